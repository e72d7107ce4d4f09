// The drawn test picture and how to read it back.
//
// The frame number is there twice: in digits for people, and as a row of 28 squares for programs.
// On a picture 640 wide and 360 high the row begins at (40, 300); a square is 20 wide and 24 high.
// Squares: white, black, then 24 bits of the number, the highest first (white is 1), then the
// parity (white when the number of ones is odd), then white.

const WIDTH = 640;
const HEIGHT = 360;
const ROW = { x: 40, y: 300, width: 20, height: 24, bits: 24 };
const SQUARES = ROW.bits + 4;

export const FRAME_RATE = 30;

function squaresOf(number) {
	const bits = [];
	for (let i = ROW.bits - 1; i >= 0; i--)
		bits.push((number >> i) & 1);
	const parity = bits.reduce((a, b) => a ^ b, 0);
	return [1, 0, ...bits, parity, 1];
}

function draw(canvas, number, name) {
	const g = canvas.getContext("2d");
	const seconds = number / FRAME_RATE;
	const hue = (number * 2) % 360;

	g.fillStyle = `hsl(${hue} 45% 28%)`;
	g.fillRect(0, 0, WIDTH, HEIGHT);
	g.fillStyle = `hsl(${(hue + 180) % 360} 70% 60%)`;
	g.beginPath();
	g.arc(320 + 250 * Math.cos(seconds * 2), 60 + 30 * Math.sin(seconds * 3), 24, 0, 2 * Math.PI);
	g.fill();
	g.fillStyle = "#fff";
	g.textAlign = "center";
	g.font = "bold 120px monospace";
	g.fillText(String(number), 320, 200);
	g.font = "24px monospace";
	g.fillText(`${name}  ${seconds.toFixed(1)} s`, 320, 260, 600);
	g.fillStyle = "#000";
	g.fillRect(ROW.x - 10, ROW.y - 10, SQUARES * ROW.width + 20, ROW.height + 20);
	squaresOf(number).forEach((bit, i) => {
		g.fillStyle = bit ? "#fff" : "#000";
		g.fillRect(ROW.x + i * ROW.width, ROW.y, ROW.width, ROW.height);
	});
}

// Draws at 30 frames a second until stop(); the number follows the clock, so a late timer skips
// numbers instead of slowing the picture down. Scale 2 makes it 1280 by 720.
export function startPicture(name, scale = 1) {
	const canvas = document.createElement("canvas");
	canvas.width = WIDTH * scale;
	canvas.height = HEIGHT * scale;
	canvas.getContext("2d").scale(scale, scale);
	draw(canvas, 0, name);
	const stream = canvas.captureStream(0);
	const [track] = stream.getVideoTracks();
	const source = track.requestFrame ? track : stream; // Firefox has it on the stream
	const began = performance.now();
	const ticker = new Worker("/pages/ticker.js");
	let last = 0;

	const next = () => {
		const number = Math.floor(((performance.now() - began) * FRAME_RATE) / 1000);
		if (number !== last) {
			last = number;
			draw(canvas, number, name);
			source.requestFrame();
		}
		const due = began + ((last + 1) * 1000) / FRAME_RATE;
		ticker.postMessage(Math.max(0, due - performance.now()));
	};
	ticker.onmessage = next;
	next();
	return {
		track,
		number: () => last,
		stop: () => {
			ticker.terminate();
			track.stop();
		},
	};
}

// A soft tone with a short rest each second, so that one hears that time goes on.
export function startTone() {
	const audio = new AudioContext();
	const tone = audio.createOscillator();
	const beat = audio.createOscillator();
	const depth = audio.createGain();
	const level = audio.createGain();
	const out = audio.createMediaStreamDestination();

	tone.frequency.value = 440;
	beat.frequency.value = 1;
	level.gain.value = 0.12;
	depth.gain.value = 0.06;
	beat.connect(depth).connect(level.gain);
	tone.connect(level).connect(out);
	tone.start();
	beat.start();
	// Without a click the browser may keep audio waiting; the first one lets it go on.
	const resume = () => audio.resume();
	if (audio.state === "suspended") {
		resume();
		document.addEventListener("pointerdown", resume, { once: true });
		document.addEventListener("keydown", resume, { once: true });
	}
	return { track: out.stream.getAudioTracks()[0], stop: () => audio.close() };
}

// The frame number in a picture of any size; null when there is none to read.
export function readNumber(source, width, height) {
	const canvas = document.createElement("canvas");
	canvas.width = WIDTH;
	canvas.height = HEIGHT;
	const g = canvas.getContext("2d", { willReadFrequently: true });
	if (!width || !height)
		return null;
	g.drawImage(source, 0, 0, width, height, 0, 0, WIDTH, HEIGHT);
	const bits = [];
	for (let i = 0; i < SQUARES; i++) {
		const x = ROW.x + i * ROW.width + ROW.width / 2 - 2;
		const { data } = g.getImageData(x, ROW.y + ROW.height / 2 - 2, 4, 4);
		let sum = 0;
		for (let p = 0; p < data.length; p += 4)
			sum += data[p] + data[p + 1] + data[p + 2];
		bits.push(sum / (3 * 16) > 127 ? 1 : 0);
	}
	const number = bits.slice(2, 2 + ROW.bits).reduce((n, bit) => n * 2 + bit, 0);
	return squaresOf(number).every((bit, i) => bit === bits[i]) ? number : null;
}
