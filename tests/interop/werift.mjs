// werift, WebRTC in TypeScript: role=publish|play url= stream= codec= video=PORT audio=PORT
import { readFileSync } from "node:fs";
import { MediaStreamTrack, RTCPeerConnection, RTCRtpCodecParameters, useH264, useOPUS, useVP8, useVP9 } from "werift";
import { options, serve, until } from "./client.mjs";
import { counts, leave, passOn, receiveRtp, stamp } from "./rtp.mjs";
import { connect } from "./w3c.mjs";

const { version } = JSON.parse(readFileSync(new URL("node_modules/werift/package.json", import.meta.url)));
const CODECS = { h264: useH264, vp8: useVP8, vp9: useVP9 };
const isPublisher = options.role === "publish";

const pc = new RTCPeerConnection({
	iceServers: [], bundlePolicy: "max-bundle",
	codecs: { audio: [useOPUS()], video: [CODECS[options.codec]({ payloadType: 98 }), new RTCRtpCodecParameters({ mimeType: "video/rtx", clockRate: 90000, payloadType: 99, parameters: "apt=98" })] },
});
const tracks = {};
for (const kind of ["audio", "video"]) {
	if (isPublisher) {
		tracks[kind] = new MediaStreamTrack({ kind });
		pc.addTransceiver(tracks[kind], { direction: "sendonly" });
	} else {
		pc.addTransceiver(kind, { direction: "recvonly" }).onTrack.subscribe((track) => {
			track.onReceiveRtp.subscribe((packet) => passOn(kind, packet.serialize()));
		});
	}
}

function send(kind, packet) {
	const { sender } = pc.getTransceivers().find((t) => t.kind === kind);
	tracks[kind].writeRtp(stamp(packet, sender.codec?.payloadType ?? 98, sender.ssrc));
	counts[kind]++;
}

async function flows() {
	const before = { ...counts };
	await until(() => `packets of both kinds: ${JSON.stringify(counts)}`,
		() => counts.video > before.video + 30 && counts.audio > before.audio + 30);
	return {};
}

await serve(async () => {
	const offer = await connect(pc);
	if (isPublisher)
		receiveRtp(send);
	await flows();
	return { version, offer, trickle: true };
}, {
	more: flows,
	end: async () => {
		await leave();
		await pc.close();
		return {};
	},
});
