// node-datachannel, the binding of libdatachannel, which OBS publishes with; its offer is built as OBS
// builds it: BUNDLE of mids 0 and 1, Opus 111, one video codec on 96, everything gathered before.
// role=publish|play url= stream= codec= video=PORT audio=PORT
import { readFileSync } from "node:fs";
import nodeDatachannel from "node-datachannel";
import { options, serve, until } from "./client.mjs";
import { counts, leave, passOn, post, receiveRtp, stamp } from "./rtp.mjs";

const { PeerConnection, Audio, Video, RtcpReceivingSession, RtcpNackResponder, RtcpSrReporter, RtpPacketizationConfig } = nodeDatachannel;
const { version } = JSON.parse(readFileSync(new URL("node_modules/node-datachannel/package.json", import.meta.url)));
const isPublisher = options.role === "publish";
const CODECS = { h264: ["H264", (v, pt) => v.addH264Codec(pt)], vp8: ["VP8", (v, pt) => v.addVP8Codec(pt)], vp9: ["VP9", (v, pt) => v.addVP9Codec(pt)] };
const MEDIA = {
	audio: { mid: "0", payloadType: 111, ssrc: 0x1000, clock: 48000 },
	video: { mid: "1", payloadType: 96, ssrc: 0x1001, clock: 90000 },
};

nodeDatachannel.initLogger("Warning", (level, message) => console.error(level, message));
const pc = new PeerConnection(options.role, { iceServers: [], disableAutoNegotiation: true });

function describe(kind) {
	const { mid, payloadType, ssrc } = MEDIA[kind];
	const description = new (kind === "audio" ? Audio : Video)(mid, isPublisher ? "SendOnly" : "RecvOnly");
	if (kind === "audio")
		description.addOpusCodec(payloadType);
	else
		CODECS[options.codec][1](description, payloadType);
	if (isPublisher)
		description.addSSRC(ssrc, "interop", "interop", `interop-${kind}`);
	return description;
}

const tracks = {};
const configs = {};
for (const kind of ["audio", "video"]) {
	const { ssrc, payloadType, clock } = MEDIA[kind];
	const track = tracks[kind] = pc.addTrack(describe(kind));
	if (isPublisher) {
		configs[kind] = new RtpPacketizationConfig(ssrc, "interop", payloadType, clock);
		const reporter = new RtcpSrReporter(configs[kind]);
		reporter.addToChain(new RtcpNackResponder());
		track.setMediaHandler(reporter);
	} else {
		track.setMediaHandler(new RtcpReceivingSession());
		track.onMessage((packet) => passOn(kind, packet));
	}
}

function send(kind, packet) {
	const { ssrc, payloadType } = MEDIA[kind];
	if (!tracks[kind].isOpen())
		return;
	configs[kind].timestamp = packet.readUInt32BE(4);
	tracks[kind].sendMessageBinary(stamp(packet, payloadType, ssrc));
	counts[kind]++;
}

async function begin() {
	let state = "", gathering = "";
	pc.onStateChange((now) => state = now);
	pc.onGatheringStateChange((now) => gathering = now);
	pc.setLocalDescription("Offer");
	await until(() => `gathered (${gathering})`, () => gathering === "complete");
	const offer = pc.localDescription().sdp;
	pc.setRemoteDescription(await post(offer), "Answer");
	await until(() => `connected (${state})`, () => state === "connected");
	if (isPublisher)
		receiveRtp(send);
	await until(() => `packets of both kinds: ${JSON.stringify(counts)}`, () => counts.video > 30 && counts.audio > 30);
	return { version: `${version}; libdatachannel ${nodeDatachannel.getLibraryVersion()}`, offer };
}

await serve(begin, {
	end: async () => {
		const left = await leave();
		pc.close();
		return left;
	},
});
