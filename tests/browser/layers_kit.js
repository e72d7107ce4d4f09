"use strict";
// What the tests of layers share: a publisher of several layers, a viewer that can choose, sources.

const { Relay, browse, check, leave, until } = require("./kit.js");

const FPS = 30;

// --- In the publisher's page ----------------------------------------------------------------------

// A picture that costs what a camera's would: a drifting ground and many small things on it.
function publish({ width, height, codec, encodings }) {
	const canvas = Object.assign(document.createElement("canvas"), { width, height });
	const g = canvas.getContext("2d");
	const stream = canvas.captureStream(0);
	const [track] = stream.getVideoTracks();
	const audio = new AudioContext();
	const tone = audio.createOscillator();
	const out = audio.createMediaStreamDestination();
	const ticker = new Worker("/pages/ticker.js");
	const began = performance.now();
	let frame = 0;

	const draw = () => {
		g.fillStyle = `hsl(${frame % 360} 40% 30%)`;
		g.fillRect(0, 0, width, height);
		for (let i = 0; i < 16; i++) {
			g.fillStyle = `hsl(${i * 47} 80% ${30 + ((frame + i * 13) % 50)}%)`;
			g.fillRect((i * 97 + frame * (1 + (i % 5))) % width, (i * 61 + frame * (i % 3)) % height,
				width / 16, height / 12);
		}
		g.fillStyle = "#fff";
		g.font = `bold ${height / 4}px monospace`;
		g.fillText(String(frame), width / 8, height / 2);
	};
	ticker.onmessage = () => {
		frame++;
		draw();
		track.requestFrame();
		const due = began + ((frame + 1) * 1000) / 30;
		ticker.postMessage(Math.max(0, due - performance.now()));
	};
	ticker.postMessage(0);
	tone.connect(out);
	tone.start();

	return (async () => {
		const pc = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
		pc.addTransceiver(out.stream.getAudioTracks()[0], { direction: "sendonly" });
		const video = pc.addTransceiver(track, { direction: "sendonly", sendEncodings: encodings });
		const all = RTCRtpSender.getCapabilities("video").codecs;
		video.setCodecPreferences([
			...all.filter((c) => c.mimeType.toLowerCase() === `video/${codec}`),
			...all.filter((c) => /\/rtx$/i.test(c.mimeType)),
		]);
		await pc.setLocalDescription();
		await new Promise((resolve) => {
			pc.onicegatheringstatechange = () => pc.iceGatheringState === "complete" && resolve();
			setTimeout(resolve, 1000);
		});
		const answer = await fetch(location.pathname.replace("publish", "whip"), {
			method: "POST",
			headers: { "Content-Type": "application/sdp" },
			body: pc.localDescription.sdp,
		});
		if (!answer.ok)
			throw new Error(`${answer.status} ${await answer.text()}`);
		const sdp = await answer.text();
		await pc.setRemoteDescription({ type: "answer", sdp });
		const location_ = answer.headers.get("Location");
		window.addEventListener("pagehide", () => fetch(location_, { method: "DELETE", keepalive: true }));
		return sdp;
	})();
}

// What the publisher sends, an entry an encoding.
function sent(page) {
	return page.evaluate(async () => {
		const report = await window.connections.at(-1).getStats();
		const out = [];
		report.forEach((s) => {
			if (s.type === "outbound-rtp" && s.kind === "video")
				out.push({
					rid: s.rid, width: s.frameWidth ?? 0, fps: s.framesPerSecond ?? 0, frames: s.framesEncoded ?? 0,
					bytes: s.bytesSent, mode: s.scalabilityMode, keys: s.keyFramesEncoded, pli: s.pliCount,
					nack: s.nackCount, limit: s.qualityLimitationReason,
				});
		});
		return out;
	});
}

// --- In the viewer's page -------------------------------------------------------------------------

function seen(page) {
	return page.evaluate(async () => {
		const report = await window.connections.at(-1)?.getStats();
		let out = null;
		report?.forEach((s) => {
			if (s.type === "inbound-rtp" && s.kind === "video")
				out = {
					atMs: s.timestamp, width: s.frameWidth ?? 0, height: s.frameHeight ?? 0,
					frames: s.framesDecoded ?? 0, keys: s.keyFramesDecoded ?? 0, dropped: s.framesDropped ?? 0,
					freezes: s.freezeCount ?? 0, frozenS: s.totalFreezesDuration ?? 0, pli: s.pliCount,
					nack: s.nackCount, lost: s.packetsLost, bytes: s.bytesReceived,
					packets: s.packetsReceived, fps: s.framesPerSecond ?? 0,
					codec: report.get(s.codecId)?.mimeType ?? "",
				};
		});
		return out;
	});
}

// The page's session, once it has one: where to say which layer it is to get.
async function watch(relay, name) {
	const page = await browse("about:blank");
	const found = new Promise((resolve) => {
		page.on("response", async (response) => {
			if (new URL(response.url()).pathname === `/whep/${name}` && response.status() === 201)
				resolve(await response.headerValue("link"));
		});
	});
	await page.goto(`${relay.url}/watch/${name}`);
	await until("the viewer is live", () => page.evaluate(() => window.sluice?.state === "live"));
	const link = /<([^>]+)>; rel="urn:ietf:params:whep:ext:core:layer"/.exec(await found);
	check(link, "the answer announces the choice of layers");
	page.layerUrl = new URL(link[1], relay.url).href;
	return page;
}

async function choose(page, wish) {
	const answer = await fetch(page.layerUrl, {
		method: "POST",
		headers: { "Content-Type": "application/json" },
		body: JSON.stringify(wish),
	});
	check(answer.ok, `the choice of ${JSON.stringify(wish)}: ${answer.status}`);
}

// --- Sources --------------------------------------------------------------------------------------

const RIDS = [
	{ rid: "low", scaleResolutionDownBy: 4, maxBitrate: 120_000, maxFramerate: FPS },
	{ rid: "mid", scaleResolutionDownBy: 2, maxBitrate: 300_000, maxFramerate: FPS },
	{ rid: "high", scaleResolutionDownBy: 1, maxBitrate: 900_000, maxFramerate: FPS },
];

// Encoders make pictures smaller when the machine is busy: what is sent now is what has to show.
const simulcast = (codec) => ({
	source: { width: 1280, height: 720, codec, encodings: RIDS },
	layers: RIDS.map(({ rid }) => ({
		wish: { rid, temporalLayerId: 2 },
		width: (encodings) => encodings.find((e) => e.rid === rid).width,
	})),
});

// A small picture has fewer spatial layers than were asked for: the mode in use says how many.
const spatialCount = (encoding) => Number(/^L(\d)/.exec(encoding.mode)?.[1] ?? 1);

const spatial = (codec, mode) => ({
	source: { width: 640, height: 360, codec, encodings: [{ scalabilityMode: mode, maxBitrate: 900_000, maxFramerate: FPS }] },
	layers: [0, 1, 2].map((id) => ({
		wish: { spatialLayerId: id, temporalLayerId: 2 },
		width: ([encoding]) => encoding.width >> Math.max(0, spatialCount(encoding) - 1 - id),
	})),
});

// Whether the viewer sees that layer.
const shows = async (publisher, viewer, layer) => (await seen(viewer))?.width === layer.width(await sent(publisher));

// A publisher whose every layer arrives at the relay.
async function begin(relay, source, name = "x") {
	const publisher = await browse(`${relay.url}/publish/${name}`);
	await publisher.evaluate(publish, source);
	await until("all layers arrive", async () => {
		const encodings = await sent(publisher);
		const [stream] = await relay.get("/api/streams");
		const video = stream?.tracks.find((track) => track.kind === "video");
		const all = video?.layer_list ?? [];
		const sizes = new Set(all.filter((layer) => layer.bitrate > 0).map((layer) => layer.rid + layer.spatialLayerId));
		const expected = source.encodings.length > 1 ? source.encodings.length : spatialCount(encodings[0] ?? {});
		return encodings.every((e) => e.frames > 10) && expected > 1 && sizes.size === expected;
	});
	return publisher;
}

// --- Changes of layer by hand ---------------------------------------------------------------------

const SWITCHES = 50;

async function fiftySwitches(kind) {
	const relay = await Relay.start();
	const publisher = await begin(relay, kind.source);
	const viewer = await watch(relay, "x");
	await until("the viewer decodes", async () => (await seen(viewer))?.frames > 30);
	const before = await seen(viewer);
	const times = [];
	let last = before;

	for (let i = 0; i < SWITCHES; i++) {
		// Up, down, and from end to end.
		const layer = kind.layers[[0, 2, 1, 2, 0, 1][i % 6] % kind.layers.length];
		const began = Date.now();
		await choose(viewer, layer.wish);
		await until(`switch ${i} to ${JSON.stringify(layer.wish)} shows`, async () =>
			(await shows(publisher, viewer, layer)) && (await seen(viewer)).frames > last.frames + 5, 15_000)
			.catch(async (error) => {
				error.message += `\nseen: ${JSON.stringify(await seen(viewer))}\nsent: ${JSON.stringify(await sent(publisher))}`;
				throw error;
			});
		times.push(Date.now() - began);
		last = await seen(viewer);
	}
	const after = await seen(viewer);
	const seconds = (after.atMs - before.atMs) / 1000;
	const result = {
		codec: after.codec,
		seconds,
		fps: (after.frames - before.frames) / seconds,
		switchMs: { median: times.sort((a, b) => a - b)[SWITCHES / 2], max: times.at(-1) },
		pli: after.pli - before.pli,
		nack: after.nack - before.nack,
		lost: after.lost - before.lost,
		freezes: after.freezes - before.freezes,
		frozenS: after.frozenS - before.frozenS,
		dropped: after.dropped - before.dropped,
		publisher: await sent(publisher),
	};
	check(result.pli === 0, `a switch made the viewer ask for a key frame: ${JSON.stringify(result)}`);
	check(result.fps > 15, `the picture went on: ${JSON.stringify(result)}`);
	check(result.nack < SWITCHES, `switches look like loss: ${JSON.stringify(result)}`);
	await leave(relay, [viewer, publisher]);
	await relay.stop();
	return result;
}

module.exports = { begin, fiftySwitches, seen, simulcast, spatial, watch };
