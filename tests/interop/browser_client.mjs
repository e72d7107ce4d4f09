// What the browser clients share: facts and counts out of a page's own RTCPeerConnection.

import { launch } from "./browser.mjs";
import { ENOUGH, options, serve } from "./client.mjs";

export const PEER = "peers[peers.length - 1]";

// The last peer's statistics, boiled down.
const DEFINE_STATS = `window.stats = async () => {
	const all = [...(await ${PEER}.getStats()).values()];
	const by = (type) => all.filter((s) => s.type === type);
	const find = (id) => all.find((s) => s.id === id);
	const media = [...by("inbound-rtp"), ...by("outbound-rtp")];
	const sum = (kind, key) => media.filter((s) => s.kind === kind).reduce((n, s) => n + (s[key] ?? 0), 0);
	return {
		frames: sum("video", "framesDecoded") + sum("video", "framesEncoded"),
		sounds: sum("audio", "packetsReceived") + sum("audio", "packetsSent"),
		energy: media.reduce((n, s) => n + (s.totalAudioEnergy ?? 0), 0),
		codecs: [...new Set(media.map((s) => find(s.codecId)?.mimeType).filter(Boolean))],
		ufrag: ${PEER}.localDescription.sdp.match(/a=ice-ufrag:(.*)/)[1].trim(),
		state: ${PEER}.connectionState,
	};
}, 0`;

// At least this much sound energy in a player says that it was not silence (a tone makes far more).
const AUDIBLE = 1e-4;

export async function run({ open, restart, sizes, end, version }) {
	const browser = await launch(options.browser);
	let page, before = { frames: 0, sounds: 0 };
	const mustSound = options.role === "play" && options.silent !== "yes";

	async function more() {
		const want = `(async () => { const s = await stats(); return s.frames >= ${before.frames + ENOUGH.frames} ` +
			`&& s.sounds >= ${before.sounds + ENOUGH.sounds} && (${!mustSound} || s.energy > ${AUDIBLE}) && s; })()`;
		before = await page.until(want, 30_000, "stats()");
		return before;
	}

	await serve(async () => {
		page = await open(browser);
		await page.until(`window.peers && peers.length && ${PEER}.connectionState === "connected"`, 45_000,
			`[location.href, document.body.innerText.slice(0, 300), window.failed, window.peers?.map((p) => p.connectionState)]`);
		await page.evaluate(DEFINE_STATS);
		const offer = await page.evaluate(`${PEER}.localDescription.sdp`);
		const first = await more();
		const patched = await page.evaluate("patched");
		if (patched.some((status) => status >= 300))
			throw new Error(`PATCH was answered with ${patched}`);
		return { version: version ? `${version}; ${browser.version}` : browser.version, offer, trickle: patched.includes(204), ...first };
	}, {
		more,
		...restart && { restart: async () => {
			await restart(page);
			// Both sides have to have moved on to the new credentials, not only still be connected.
			await page.until(`(async () => (await stats()).ufrag !== ${JSON.stringify(before.ufrag)} && ${PEER}.signalingState === "stable" && ["connected", "completed"].includes(${PEER}.iceConnectionState))()`, 20_000, "stats()");
			return await more();
		} },
		...sizes && { sizes: () => sizes(page) },
		end: async () => {
			try {
				return await end(page) ?? {};
			} finally {
				await browser.close();
			}
		},
	});
}
