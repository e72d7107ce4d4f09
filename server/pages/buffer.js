// How long what arrives waits before it is shown.
//
// A browser's buffer follows the network's jitter and one repair. A packet whose repair was lost as
// well comes some round trips later, and the picture stands still. Where packets are repaired all the
// time, the page asks for a buffer that waits for the third repair on either leg; where none is, for
// the browser's own.

const LOSSY_SHARE = 0.005; // of the packets
const CALM_MS = 20_000; // so long without loss, and the buffer shrinks
const MOST_MS = 800;
const BASE_MS = 100;
const ROUND_TRIPS = 6; // three repairs on either leg

export class Buffer {
	constructor(pc) {
		this.pc = pc;
		this.asked = 0;
		this.packets = 0;
		this.lossyAt = -Infinity;
	}

	// Once a second: totals of the video's repairs asked for and packets received, and the round trip.
	update(asked, packets, rttMs, now) {
		const share = (asked - this.asked) / Math.max(packets - this.packets, 1);
		this.asked = asked;
		this.packets = packets;
		if (share >= LOSSY_SHARE)
			this.lossyAt = now;
		const isLossy = now - this.lossyAt < CALM_MS;
		const target = isLossy ? Math.min(BASE_MS + ROUND_TRIPS * rttMs, MOST_MS) : null;
		for (const receiver of this.pc.getReceivers())
			if ("jitterBufferTarget" in receiver)
				receiver.jitterBufferTarget = target;
	}
}
