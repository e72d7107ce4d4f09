// @roamhq/wrtc, an older libwebrtc for Node.js with codecs of its own: role=publish|play url= stream= codec=
import { readFileSync } from "node:fs";
import wrtc from "@roamhq/wrtc";
import { growth, options, serve, until } from "./client.mjs";
import { leave } from "./rtp.mjs";
import { connect, restart } from "./w3c.mjs";

const { MediaStream, RTCPeerConnection, RTCRtpReceiver, RTCRtpSender, nonstandard } = wrtc;
const { version } = JSON.parse(readFileSync(new URL("node_modules/@roamhq/wrtc/package.json", import.meta.url)));
const isPublisher = options.role === "publish";
const WIDTH = 640, HEIGHT = 360, RATE = 48000;
const pc = new RTCPeerConnection({ iceServers: [], bundlePolicy: "max-bundle" });
const counts = { frames: 0, sounds: 0 };

// A white bar that moves over grey.
function picture(number) {
	const data = new Uint8ClampedArray((WIDTH * HEIGHT * 3) / 2).fill(128);
	for (let y = 0; y < HEIGHT; y++)
		data.fill(235, y * WIDTH + ((number * 4) % (WIDTH - 40)), y * WIDTH + ((number * 4) % (WIDTH - 40)) + 40);
	return { width: WIDTH, height: HEIGHT, data };
}

// 10 ms of 440 Hz.
function sound(number) {
	const samples = new Int16Array(RATE / 100);
	for (let i = 0; i < samples.length; i++)
		samples[i] = 8000 * Math.sin((2 * Math.PI * 440 * (number * samples.length + i)) / RATE);
	return { samples, sampleRate: RATE, bitsPerSample: 16, channelCount: 1, numberOfFrames: samples.length };
}

// Calls make(0), make(1)... at their times.
function clock(intervalMs, make) {
	const began = performance.now();
	let next = 0;
	setInterval(() => {
		for (; began + next * intervalMs <= performance.now(); next++)
			make(next);
	}, 5);
}

function publish() {
	const video = new nonstandard.RTCVideoSource(), audio = new nonstandard.RTCAudioSource();
	const stream = new MediaStream();
	for (const track of [audio.createTrack(), video.createTrack()])
		pc.addTransceiver(track, { direction: "sendonly", streams: [stream] });
	clock(1000 / 30, (n) => video.onFrame(picture(n)));
	clock(10, (n) => audio.onData(sound(n)));
}

function play() {
	for (const kind of ["audio", "video"]) {
		const { receiver } = pc.addTransceiver(kind, { direction: "recvonly" });
		if (kind === "video")
			new nonstandard.RTCVideoSink(receiver.track).onframe = () => counts.frames++;
		else
			new nonstandard.RTCAudioSink(receiver.track).ondata = ({ samples }) => counts.sounds += samples.some((s) => Math.abs(s) > 500);
	}
}

const seen = growth(counts);

async function more() {
	if (!isPublisher)
		await until(() => `decoded: ${JSON.stringify(counts)}`, seen.isEnough);
	seen.mark();
	return {};
}

await serve(async () => {
	(isPublisher ? publish : play)();
	const video = pc.getTransceivers()[1];
	const { codecs } = (isPublisher ? RTCRtpSender : RTCRtpReceiver).getCapabilities("video");
	video.setCodecPreferences(codecs.filter((c) => [`video/${options.codec}`, "video/rtx"].includes(c.mimeType.toLowerCase())));
	const offer = await connect(pc);
	await more();
	return { version, offer, trickle: true };
}, {
	more,
	restart: async () => {
		await restart(pc);
		return await more();
	},
	end: async () => {
		await leave();
		pc.close();
		return {};
	},
});
