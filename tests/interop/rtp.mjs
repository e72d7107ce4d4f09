// Plain RTP between a client without codecs and gst_rtp.py, on UDP ports of 127.0.0.1; WHIP and WHEP
// for programs that are no browsers.

import { createSocket } from "node:dgram";
import { options } from "./client.mjs";

const PORTS = { video: Number(options.video), audio: Number(options.audio) };
const CLOCK = { video: 90000, audio: 48000 };
export const endpoint = `${options.url}/${options.role === "publish" ? "whip" : "whep"}/${options.stream}`;

// onPacket(kind, packet) for each RTP packet of the encoder.
export function receiveRtp(onPacket) {
	for (const [kind, port] of Object.entries(PORTS)) {
		const socket = createSocket("udp4");
		socket.on("message", (packet) => onPacket(kind, packet));
		socket.bind(port, "127.0.0.1");
	}
}

// As if the packet had been made for these; in place.
export function stamp(packet, payloadType, ssrc) {
	packet[1] = (packet[1] & 0x80) | payloadType;
	packet.writeUInt32BE(ssrc, 8);
	return packet;
}

const socket = createSocket("udp4");
export const counts = { video: 0, audio: 0 };

// To the decoder, which knows video by payload type 96 and audio by 97. RTCP and padding stay here.
export function passOn(kind, packet) {
	if (packet.length < 13 || (packet[1] >= 192 && packet[1] <= 223))
		return;
	counts[kind]++;
	const copy = Buffer.from(packet);
	copy[1] = (copy[1] & 0x80) | (kind === "video" ? 96 : 97);
	socket.send(copy, PORTS[kind], "127.0.0.1");
}

export const ticksOf = (kind, ms) => Math.round((ms * CLOCK[kind]) / 1000) >>> 0;

let session = null, tag = null;

export async function post(offer) {
	const response = await fetch(endpoint, { method: "POST", headers: { "Content-Type": "application/sdp" }, body: offer });
	const text = await response.text();
	if (response.status !== 201)
		throw new Error(`${response.status} ${text}`);
	session = new URL(response.headers.get("Location"), endpoint);
	tag = response.headers.get("ETag");
	return text;
}

export async function patch(fragment, match = tag) {
	const response = await fetch(session, {
		method: "PATCH", body: fragment,
		headers: { "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": match },
	});
	const text = await response.text();
	if (response.status !== 204 && response.status !== 200)
		throw new Error(`PATCH: ${response.status} ${text}`);
	tag = response.headers.get("ETag") ?? tag;
	return text;
}

export async function leave() {
	const response = await fetch(session, { method: "DELETE" });
	if (response.status !== 200)
		throw new Error(`DELETE: ${response.status}`);
	return {};
}

// The answer's payload type for a codec.
export const payloadTypeOf = (sdp, codec) => Number(sdp.match(new RegExp(`a=rtpmap:(\\d+) ${codec}/`, "i"))[1]);
