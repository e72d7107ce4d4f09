"use strict";
// A viewer behind a link that is narrow, then is not, then is again: what it gets is the relay's choice.

const { Impair, Relay, browse, check, freeUdpPort, leave, until } = require("./kit.js");
const { begin, seen, watch } = require("./layers_kit.js");

const NARROW = { "rate-kbps-down": 400, "queue-kb-down": 64 };
const WIDE = { "rate-kbps-down": 0 };
const SETTLE_MS = 5000; // after that what fits is what is sent
const CLIMB_MS = 15_000; // after that the largest is, once the limit is gone
const MACHINE_MS = 5000; // what a busy machine may take on top
const HOLD_MS = 12_000; // for how long the queue is watched
const QUEUE_MS = 300;

const ufragOf = (page) => page.evaluate(() =>
	/^a=ice-ufrag:(\S+)/m.exec(window.connections.at(-1).localDescription.sdp)[1]);

// Who sees which layer, and how much the relay thinks the link takes.
class Watcher {
	constructor(relay, viewer) {
		Object.assign(this, { relay, viewer, samples: [] });
	}

	async sample() {
		const [session, picture, streams] = await Promise.all([
			this.relay.get("/api/sessions").then((all) => all.find((s) => s.role === "viewer")),
			seen(this.viewer), this.relay.get("/api/streams"),
		]);
		const { layer_list: list } = streams[0].tracks.find((track) => track.kind === "video");
		const isLayer = (l) => ["rid", "spatialLayerId", "temporalLayerId"].every((key) => l[key] === session.layer?.[key]);
		const bps = list.find(isLayer)?.bitrate ?? 0;
		const sample = {
			at: Date.now(), width: picture.width, frames: picture.frames, bytes: picture.bytes,
			size: `${session.layer?.rid}/${session.layer?.spatialLayerId}`, rate: session.layer?.temporalLayerId,
			isPaused: session.layer?.paused, isTop: bps > 0 && list.every((layer) => layer.bitrate <= bps),
			kbps: Math.round(bps / 1000), estimateKbps: Math.round(session.estimate_bps / 1000),
		};
		this.samples.push(sample);
		return sample;
	}

	// Samples for so long.
	async follow(ms) {
		const end = Date.now() + ms;
		while ((await this.sample()).at < end)
			await new Promise((resolve) => setTimeout(resolve, 100));
	}

	// Since when all that is sent fits, in ms after that.
	settledMs(since) {
		const after = this.samples.filter((s) => s.at >= since);
		const last = after.findLastIndex((s) => s.isPaused || s.kbps >= NARROW["rate-kbps-down"]);
		return last < 0 ? 0 : (after[last + 1]?.at ?? Infinity) - since;
	}

	// Changes of layer, with the estimate of that time.
	path(since) {
		const name = (s) => s.isPaused ? "paused" : `${s.size}/${s.rate}`;
		return this.samples.filter((s) => s.at >= since)
			.filter((s, i, all) => i === 0 || name(s) !== name(all[i - 1]))
			.map((s) => `${((s.at - since) / 1000).toFixed(1)} s: ${name(s)} (${s.estimateKbps} kbit/s)`);
	}
}

// From now on the link is narrow. What was there before has SETTLE_MS to go.
async function stayNarrow(impair, watcher, since) {
	const left = () => Math.max(0, since + SETTLE_MS - Date.now());
	await watcher.follow(left());
	await impair.stats();
	const from = watcher.samples.at(-1);
	await watcher.follow(HOLD_MS);
	const { held_ms: heldMs, overflow } = (await impair.stats()).down;
	const to = watcher.samples.at(-1);
	return {
		settledMs: watcher.settledMs(since),
		size: to.size, width: to.width, layerKbps: to.kbps, estimateKbps: to.estimateKbps,
		arrivingKbps: Math.round((to.bytes - from.bytes) * 8 / (to.at - from.at)),
		fps: (to.frames - from.frames) * 1000 / (to.at - from.at),
		heldMs, overflow,
		path: watcher.path(since),
	};
}

async function climb(watcher) {
	const since = Date.now();
	while (!(await watcher.sample()).isTop && Date.now() - since < CLIMB_MS + MACHINE_MS)
		await new Promise((resolve) => setTimeout(resolve, 100));
	const { isTop, at } = watcher.samples.at(-1);
	return { isTop, climbedMs: at - since, path: watcher.path(since) };
}

async function narrowLink({ source }) {
	const port = await freeUdpPort();
	const impair = await Impair.start(port);
	const relay = await Relay.start("--udp", `127.0.0.1:${port}`, "--advertise", `127.0.0.1:${impair.port}`);
	const publisher = await begin(relay, source);
	await impair.set(WIDE, await ufragOf(publisher)); // for good
	await impair.set(NARROW);
	const viewer = await watch(relay, "x");
	const watcher = new Watcher(relay, viewer);

	const joinedAt = Date.now();
	await until("there is a picture", async () => (await seen(viewer))?.frames > 0);
	const joined = await stayNarrow(impair, watcher, joinedAt);
	await impair.set(WIDE);
	const climbed = await climb(watcher);
	await watcher.follow(4000);
	await impair.set(NARROW);
	const narrowed = await stayNarrow(impair, watcher, Date.now());
	const result = { joined, climbed, narrowed };
	for (const [name, now] of Object.entries({ joined, narrowed })) {
		check(now.settledMs < SETTLE_MS + MACHINE_MS, `${name}: it settles: ${JSON.stringify(result)}`);
		check(now.heldMs.p95 < QUEUE_MS, `${name}: the queue stays short: ${JSON.stringify(result)}`);
		check(now.fps > 5, `${name}: the picture moves: ${JSON.stringify(result)}`);
	}
	check(climbed.isTop, `the largest again: ${JSON.stringify(result)}`);
	await leave(relay, [viewer, publisher]);
	await relay.stop();
	await impair.stop();
	return result;
}

module.exports = { narrowLink };
