// /publish/{stream}: camera, screen or the test picture to the relay by WHIP.
//
// ?source=test|camera|screen  ?codec=vp8|h264|vp9|av1  ?layers=one|simulcast|svc  ?kbps=N
// ?auto=1 (start at once)
// ?token= or #token=          window.sluice: { state, reason, stats, frame, start(), stop() }

import { Rates, Session, byId, endOf, kbit, parameter, showState, showStats, streamName } from "/pages/common.js";
import { FRAME_RATE, startPicture, startTone } from "/pages/picture.js";

const name = streamName();
const DEFAULT_KBPS = 2500;
// Lowest first, as Chromium shares out its bitrate; the parts are of all of it.
const SIMULCAST = [
	{ rid: "l", scaleResolutionDownBy: 4, part: 0.06 },
	{ rid: "m", scaleResolutionDownBy: 2, part: 0.22 },
	{ rid: "h", scaleResolutionDownBy: 1, part: 0.72 },
];
const SVC = "L3T3_KEY"; // each layer's picture is predicted from the one below at key frames only
let run = null; // what start() began and stop() ends

window.sluice = { state: "idle", reason: "", stats: {}, frame: () => run?.picture?.number() ?? 0, start, stop };

async function capture(kind, layers) {
	if (kind === "test") {
		const picture = startPicture(name, layers === "one" ? 1 : 2); // browsers leave out sizes of small pictures
		const tone = startTone();
		return {
			stream: new MediaStream([picture.track, tone.track]),
			picture,
			end: () => {
				picture.stop();
				tone.stop();
			},
		};
	}
	if (!navigator.mediaDevices)
		throw new Error("The browser gives camera and screen to pages over HTTPS or on localhost only. The test picture works here.");
	const stream = kind === "screen"
		? await navigator.mediaDevices.getDisplayMedia({ video: true, audio: true })
		: await navigator.mediaDevices.getUserMedia({
			video: { width: { ideal: 1280 }, height: { ideal: 720 } },
			audio: true,
		});
	return { stream, picture: null, end: () => stream.getTracks().forEach((t) => t.stop()) };
}

function preferCodec(transceiver, codec) {
	const all = RTCRtpSender.getCapabilities("video").codecs;
	const wanted = all.filter((c) => c.mimeType.toLowerCase() === `video/${codec}`);
	const repair = all.filter((c) => /\/(rtx|red|ulpfec)$/i.test(c.mimeType));
	if (!wanted.length)
		throw new Error(`This browser cannot send ${codec.toUpperCase()}.`);
	transceiver.setCodecPreferences([...wanted, ...repair]);
}

function encodings(layers) {
	const bps = (Number(parameter("kbps")) || DEFAULT_KBPS) * 1000;
	if (layers === "simulcast")
		return SIMULCAST.map(({ rid, scaleResolutionDownBy, part }) =>
			({ rid, scaleResolutionDownBy, maxBitrate: Math.round(bps * part), maxFramerate: FRAME_RATE }));
	return [{ maxBitrate: bps, maxFramerate: FRAME_RATE, ...(layers === "svc" ? { scalabilityMode: SVC } : {}) }];
}

function prepare(pc, stream, codec, layers) {
	for (const track of stream.getTracks()) {
		const init = { direction: "sendonly", streams: [stream] };
		if (track.kind === "video")
			init.sendEncodings = encodings(layers);
		const transceiver = pc.addTransceiver(track, init);
		if (track.kind === "video" && codec)
			preferCodec(transceiver, codec);
	}
}

async function start() {
	if (run)
		return;
	const mine = { media: null, session: null, picture: null, rates: new Rates() };
	run = mine;
	buttons();
	try {
		showState("starting", "Opening the source.");
		const layers = byId("layers").value;
		const codec = byId("codec").value || (layers === "svc" ? "vp9" : "");
		mine.media = await capture(byId("source").value, layers);
		mine.picture = mine.media.picture;
		byId("video").srcObject = mine.media.stream;
		mine.media.stream.getTracks().forEach((t) => t.addEventListener("ended", () => run === mine && stop()));
		showState("connecting", "Connecting to the relay.");
		mine.session = new Session(`/whip/${name}`, byId("token").value, (state, word) => run === mine && onState(state, word));
		await mine.session.open((pc) => prepare(pc, mine.media.stream, codec, layers));
		if (run !== mine)
			mine.session.close();
	} catch (error) {
		if (run === mine)
			end("failed", error.message);
	}
}

async function onState(state, word) {
	if (state === "waiting") {
		showState("connecting", word.detail);
	} else if (state === "connected") {
		showState("live", "Live.");
	} else if (state === "failed" || state === "closed") {
		end("failed", endOf(word ?? await run?.session?.status()));
	} else if (state === "disconnected") {
		showState("connecting", "The connection is interrupted.");
	}
}

function end(state, text) {
	run?.session?.close();
	run?.media?.end();
	run = null;
	byId("video").srcObject = null;
	showState(state, text);
	buttons();
}

function stop() {
	if (run)
		end("stopped", "Stopped.");
}

function buttons() {
	byId("start").disabled = Boolean(run);
	byId("stop").disabled = !run;
	for (const id of ["source", "codec", "layers", "token"])
		byId(id).disabled = Boolean(run);
}

async function measure() {
	if (!run?.session?.pc)
		return;
	const mine = run;
	const stats = { kbps: 0, fps: 0, width: 0, height: 0, rttMs: 0, lossPct: 0, codec: "", packets: 0, keyFrames: 0, frames: 0 };
	const report = await mine.session.pc.getStats();
	report.forEach((s) => {
		if (s.type === "outbound-rtp") {
			stats.kbps += kbit(mine.rates.perSecond(s.id, s.bytesSent, s.timestamp));
			stats.packets += s.packetsSent;
		}
		// Of several sizes, the largest that is sent.
		if (s.type === "outbound-rtp" && s.kind === "video" && (s.frameWidth ?? 0) >= stats.width) {
			stats.fps = s.framesPerSecond ?? 0;
			stats.width = s.frameWidth ?? 0;
			stats.height = s.frameHeight ?? 0;
			stats.frames = s.framesEncoded ?? 0;
			stats.keyFrames = s.keyFramesEncoded ?? 0;
			stats.codec = report.get(s.codecId)?.mimeType ?? "";
		}
		if (s.type === "remote-inbound-rtp" && s.kind === "video") {
			stats.rttMs = Math.round((s.roundTripTime ?? 0) * 1000);
			stats.lossPct = Math.round((s.fractionLost ?? 0) * 1000) / 10;
		}
	});
	if (run !== mine)
		return;
	window.sluice.stats = stats;
	showStats([
		["Sent", `${stats.kbps} kbit/s`],
		["Frames", `${stats.fps} /s`],
		["Picture", stats.width ? `${stats.width}×${stats.height}` : "–"],
		["Codec", stats.codec.replace("video/", "") || "–"],
		["Round trip", `${stats.rttMs} ms`],
		["Loss", `${stats.lossPct} %`],
	]);
}

document.title = `Publish ${name} - Sluice`;
byId("stream").textContent = name;
byId("watch").href = `/watch/${name}`;
byId("insecure").hidden = Boolean(navigator.mediaDevices);
for (const [id, allowed] of [["source", ["test", "camera", "screen"]], ["codec", ["vp8", "h264", "vp9", "av1"]],
	["layers", ["one", "simulcast", "svc"]]]) {
	const value = parameter(id).toLowerCase();
	if (allowed.includes(value))
		byId(id).value = value;
}
byId("token").value = parameter("token");
byId("controls").addEventListener("submit", (event) => {
	event.preventDefault();
	start();
});
byId("stop").addEventListener("click", stop);
window.addEventListener("pagehide", stop);
setInterval(measure, 1000);
if (parameter("auto") === "1")
	start();
