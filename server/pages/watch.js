// /watch/{stream}: the stream from the relay by WHEP. It comes back by itself when the stream ends
// or is not there yet.
//
// Where the stream has layers, one can be chosen by hand; else the relay chooses what fits the link.
//
// ?token= or #token=   window.sluice: { state, reason, stats, attempts, layers, viewers, frameNumber(), stop() }

import { Buffer } from "/pages/buffer.js";
import { Rates, Session, byId, endOf, kbit, parameter, sentence, showState, showStats, streamName } from "/pages/common.js";
import { Extensions, LayerMenu, layersOf } from "/pages/layers.js";
import { readNumber } from "/pages/picture.js";

const name = streamName();
const video = byId("video");
const WAIT_MS = { first: 500, most: 8000 };
const SILENCE_MS = 5000; // without a packet the connection counts as lost
let session = null;
let extensions = null;
let rates = new Rates();
let buffer = null;
let waitMs = WAIT_MS.first;
let timer = 0;
let silentSince = 0;
let packetsBefore = 0;

window.sluice = {
	state: "idle",
	reason: "",
	stats: {},
	attempts: 0,
	layers: [],
	viewers: 0,
	frameNumber: () => readNumber(video, video.videoWidth, video.videoHeight),
	stop,
};

// Frames of several spatial layers can be told apart by the dependency descriptor alone where the codec
// is AV1; browsers offer it to receive only when asked.
function acceptDescriptors(transceiver) {
	const extensions = transceiver.getHeaderExtensionsToNegotiate?.();
	const descriptor = extensions?.find((e) => e.uri.endsWith("#dependency-descriptor-rtp-header-extension"));
	if (!descriptor)
		return;
	descriptor.direction = "sendrecv";
	transceiver.setHeaderExtensionsToNegotiate(extensions);
}

async function connect() {
	clearTimeout(timer);
	const mine = new Session(`/whep/${name}`, byId("token").value, (state, word) => session === mine && onState(state, word));
	session = mine;
	rates = new Rates();
	silentSince = performance.now();
	packetsBefore = 0;
	window.sluice.attempts++;
	try {
		showState("connecting", "Connecting.");
		await mine.open((pc) => {
			const stream = new MediaStream();
			pc.addTransceiver("audio", { direction: "recvonly" });
			acceptDescriptors(pc.addTransceiver("video", { direction: "recvonly" }));
			pc.addEventListener("track", ({ track }) => {
				stream.addTrack(track);
				video.srcObject = stream;
				play();
			});
		});
		if (session === mine)
			buffer = new Buffer(mine.pc);
		if (session !== mine)
			mine.close();
		else
			extensions = new Extensions(mine, (event, data) => session === mine && onEvent(event, data));
	} catch (error) {
		if (session === mine)
			fail(error);
		else
			mine.close();
	}
}

const menu = new LayerMenu(byId("quality"), async (layer) => {
	byId("chosen").textContent = "";
	try {
		await extensions.choose(layer);
	} catch (error) {
		byId("chosen").textContent = sentence(error.message);
	}
});

function onEvent(event, data) {
	if (event === "layers") {
		window.sluice.layers = layersOf(data);
		byId("choice").hidden = !menu.show(window.sluice.layers);
	} else if (event === "viewercount") {
		window.sluice.viewers = data.viewercount;
	} else if (event === "reconnect") {
		fail(new Error("The relay asks to connect anew."));
	}
}

// The session and all that hangs on it.
function leave() {
	extensions?.close();
	extensions = null;
	session?.close();
	session = null;
	buffer = null;
	menu.reset();
	byId("choice").hidden = true;
	window.sluice.layers = [];
}

// With sound where the browser allows it without a click, else muted with a button.
async function play() {
	try {
		video.muted = false;
		await video.play();
	} catch (error) {
		if (error.name !== "NotAllowedError")
			return; // another track came in between; its own call plays
		video.muted = true;
		video.play().catch(() => {});
	}
	byId("unmute").hidden = !video.muted;
}

function fail(error) {
	leave();
	if (error.status === 401 || error.status === 403) {
		byId("controls").hidden = false;
		showState("failed", error.message);
		return;
	}
	const isFinal = error.status >= 400 && error.status < 500 && ![404, 409, 429].includes(error.status);
	if (isFinal) {
		showState("failed", error.message);
		return;
	}
	// Spread, so that the viewers of a stream that comes back do not all come at once.
	const wait = Math.max(waitMs, (error.retryAfter ?? 0) * 1000) * (0.75 + Math.random() / 2);
	waitMs = Math.min(waitMs * 2, WAIT_MS.most);
	showState("waiting", `${sentence(error.message)} ${error.status === 409 ? "It starts here as soon as somebody does." : "Trying again."}`);
	timer = setTimeout(connect, wait);
}

async function onState(state, word) {
	if (state === "waiting") {
		showState("connecting", word.detail);
	} else if (state === "connected") {
		waitMs = WAIT_MS.first;
		silentSince = performance.now();
		showState("live", "Live.");
	} else if (state === "failed" || state === "closed") {
		const mine = session;
		const status = word ?? await mine.status();
		if (session === mine)
			fail(new Error(endOf(status)));
	} else if (state === "disconnected") {
		showState("connecting", "The connection is interrupted.");
	}
}

function stop() {
	clearTimeout(timer);
	leave();
	showState("stopped", "Stopped.");
}

// The relay keeps viewers while a publisher restarts, so silence alone is no reason to leave; a
// session the relay has ended is.
async function checkSilence(packets) {
	const now = performance.now();
	if (packets !== packetsBefore) {
		packetsBefore = packets;
		silentSince = now;
		if (window.sluice.state === "silent")
			showState("live", "Live.");
		return;
	}
	if (now - silentSince < SILENCE_MS || !["live", "silent"].includes(window.sluice.state))
		return;
	const mine = session;
	const status = await mine.status();
	if (session !== mine || packets !== packetsBefore)
		return;
	silentSince = now;
	if (status)
		showState("silent", "Nothing arrives; the publisher seems to be away.");
	else
		fail(new Error("The session has ended."));
}

async function measure() {
	if (!session?.pc)
		return;
	const mine = session;
	const stats = {
		kbps: 0, fps: 0, width: 0, height: 0, rttMs: 0, lost: 0, lossPct: 0, jitterMs: 0, frames: 0,
		freezes: 0, bufferMs: 0, asked: 0, audioEnergy: 0, packets: 0, codec: "",
	};
	let videoPackets = 0;
	const report = await mine.pc.getStats();
	report.forEach((s) => {
		if (s.type === "inbound-rtp") {
			stats.kbps += kbit(rates.perSecond(s.id, s.bytesReceived, s.timestamp));
			stats.packets += s.packetsReceived;
			stats.lost += s.packetsLost;
		}
		if (s.type === "inbound-rtp" && s.kind === "video") {
			stats.fps = s.framesPerSecond ?? 0;
			stats.width = s.frameWidth ?? 0;
			stats.height = s.frameHeight ?? 0;
			stats.frames = s.framesDecoded ?? 0;
			stats.freezes = s.freezeCount ?? 0;
			stats.asked = s.nackCount ?? 0;
			videoPackets = s.packetsReceived;
			// Seconds by frames instead of by milliseconds: milliseconds a frame.
			stats.bufferMs = Math.round(rates.perSecond("buffer", s.jitterBufferDelay ?? 0, s.jitterBufferEmittedCount ?? 0));
			stats.jitterMs = Math.round((s.jitter ?? 0) * 1000);
			stats.codec = report.get(s.codecId)?.mimeType ?? "";
		}
		if (s.type === "inbound-rtp" && s.kind === "audio")
			stats.audioEnergy = s.totalAudioEnergy ?? 0;
		if (s.type === "candidate-pair" && s.nominated && s.currentRoundTripTime !== undefined)
			stats.rttMs = Math.round(s.currentRoundTripTime * 1000);
	});
	if (session !== mine)
		return;
	stats.lossPct = stats.packets ? Math.round((1000 * stats.lost) / (stats.packets + stats.lost)) / 10 : 0;
	window.sluice.stats = stats;
	buffer?.update(stats.asked, videoPackets, stats.rttMs, performance.now());
	showStats([
		["Received", `${stats.kbps} kbit/s`],
		["Frames", `${stats.fps} /s`],
		["Picture", stats.width ? `${stats.width}×${stats.height}` : "–"],
		["Codec", stats.codec.replace("video/", "") || "–"],
		["Round trip", `${stats.rttMs} ms`],
		["Jitter", `${stats.jitterMs} ms`],
		["Lost", `${stats.lost} (${stats.lossPct} %)`],
		["Buffer", `${stats.bufferMs} ms`],
		["Freezes", String(stats.freezes)],
		["Viewers", String(window.sluice.viewers)],
	]);
	await checkSilence(stats.packets);
}

document.title = `Watch ${name} - Sluice`;
byId("stream").textContent = name;
byId("publish").href = `/publish/${name}`;
byId("token").value = parameter("token");
byId("controls").addEventListener("submit", (event) => {
	event.preventDefault();
	byId("controls").hidden = true;
	connect();
});
byId("unmute").addEventListener("click", () => {
	video.muted = false;
	video.play();
	byId("unmute").hidden = true;
});
window.addEventListener("pagehide", stop);
setInterval(measure, 1000);
connect();
