// WHIP and WHEP with any RTCPeerConnection outside a browser: the offer goes out without candidates,
// these follow by PATCH; an ICE restart.

import { until } from "./client.mjs";
import { patch, post } from "./rtp.mjs";

const field = (sdp, name) => sdp.match(new RegExp(`^a=${name}:(.*)$`, "m"))?.[1].trim();

function fragment(sdp, candidates) {
	const media = sdp.match(/^m=.*$/m)[0].trim();
	return [
		`a=ice-ufrag:${field(sdp, "ice-ufrag")}`, `a=ice-pwd:${field(sdp, "ice-pwd")}`, media, `a=mid:${field(sdp, "mid")}`,
		...candidates.map((c) => `a=${c.replace(/^a=/, "")}`), "a=end-of-candidates", "",
	].join("\r\n");
}

// Candidates that come up from now on; done when there are no more.
function gather(pc) {
	const found = [];
	let isDone = false;
	pc.onicecandidate = ({ candidate }) => {
		if (candidate?.candidate)
			found.push(candidate.candidate);
		else
			isDone = true;
	};
	return async () => {
		await until(() => `candidates (${pc.iceGatheringState}, ${found.length})`, () => isDone || pc.iceGatheringState === "complete");
		return [...new Set(found)];
	};
}

export async function connect(pc) {
	const gathered = gather(pc);
	const offer = await pc.createOffer();
	const answer = await post(offer.sdp);
	await pc.setLocalDescription(offer);
	await pc.setRemoteDescription({ type: "answer", sdp: answer });
	await patch(fragment(pc.localDescription.sdp, await gathered()));
	await until(() => `connected (${pc.connectionState}, ${pc.iceConnectionState})`, () => pc.connectionState === "connected");
	return offer.sdp;
}

export async function restart(pc) {
	const before = pc.remoteDescription.sdp;
	const gathered = gather(pc);
	await pc.setLocalDescription(await pc.createOffer({ iceRestart: true }));
	const text = await patch(fragment(pc.localDescription.sdp, await gathered()), "*");
	const ufrag = field(text, "ice-ufrag"), pwd = field(text, "ice-pwd");
	if (!ufrag || before.includes(ufrag))
		throw new Error(`no new credentials in ${text}`);
	const sdp = before.replace(/^a=ice-ufrag:.*$/gm, `a=ice-ufrag:${ufrag}`).replace(/^a=ice-pwd:.*$/gm, `a=ice-pwd:${pwd}`);
	await pc.setRemoteDescription({ type: "answer", sdp: sdp.replace(/\r?\n/g, "\r\n") });
	await until(() => `connected again (${pc.connectionState}, ${pc.iceConnectionState})`,
		() => pc.connectionState === "connected" && ["connected", "completed"].includes(pc.iceConnectionState));
}
