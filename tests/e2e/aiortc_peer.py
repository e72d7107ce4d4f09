"""A WHIP and WHEP client on aiortc, for tests that count what arrives.

Thread: everything but HTTP runs on the caller's event loop.
"""

import asyncio
import fractions
import time

import aioice.ice
import aiortc
import aiortc.rtcrtpreceiver
import numpy
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame

from kit import request

# aioice leaves loopback out, and a machine may have nothing else.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]

WIDTH, HEIGHT, FPS = 320, 180, 30
SDP = "application/sdp"


def draw(number, noise_rows=0, rng=None):
    """A grey ramp with the frame number in 16 squares along its upper edge, the highest bit first."""
    luma = numpy.tile(numpy.linspace(60, 190, WIDTH, dtype=numpy.uint8), (HEIGHT, 1))
    if noise_rows:
        luma[-noise_rows:] = rng.integers(40, 215, (noise_rows, WIDTH), dtype=numpy.uint8)
    for bit in range(16):
        luma[4:20, 20 * bit:20 * bit + 20] = 235 if number >> (15 - bit) & 1 else 16
    picture = numpy.full((HEIGHT * 3 // 2, WIDTH), 128, dtype=numpy.uint8)
    picture[:HEIGHT] = luma
    return VideoFrame.from_ndarray(picture, format="yuv420p")


def read(frame):
    """The number that draw() put into a picture."""
    luma = frame.to_ndarray(format="yuv420p")[:HEIGHT]
    number = 0
    for bit in range(16):
        number = number * 2 + int(luma[8:16, 20 * bit + 6:20 * bit + 14].mean() > 125)
    return number


class Clock:
    """Due times of a stream of frames; one that is late is not followed by a burst of others."""

    def __init__(self, interval_s):
        self.interval_s, self.next = interval_s, time.monotonic()

    async def tick(self):
        await asyncio.sleep(max(0, self.next - time.monotonic()))
        self.next = max(self.next + self.interval_s, time.monotonic() - self.interval_s)


class DrawnVideo(aiortc.MediaStreamTrack):
    kind = "video"

    def __init__(self, noise_rows=0):
        super().__init__()
        self.number, self.noise_rows = 0, noise_rows
        self.clock, self.rng = Clock(1 / FPS), numpy.random.default_rng(1)

    async def recv(self):
        await self.clock.tick()
        frame = draw(self.number, self.noise_rows, self.rng)
        frame.pts, frame.time_base = self.number * 90000 // FPS, fractions.Fraction(1, 90000)
        self.number += 1
        return frame


class Tone(aiortc.MediaStreamTrack):
    """A sine of 440 Hz at 48 kHz."""

    kind = "audio"
    SAMPLES = 960

    def __init__(self):
        super().__init__()
        self.at, self.clock = 0, Clock(self.SAMPLES / 48000)

    async def recv(self):
        await self.clock.tick()
        t = numpy.arange(self.at, self.at + self.SAMPLES) / 48000
        wave = (numpy.sin(2 * numpy.pi * 440 * t) * 8000).astype(numpy.int16)
        frame = AudioFrame.from_ndarray(wave.reshape(1, -1), format="s16", layout="mono")
        frame.pts, frame.sample_rate, frame.time_base = self.at, 48000, fractions.Fraction(1, 48000)
        self.at += self.SAMPLES
        return frame


class Peer:
    """One session. Counts decoded video frames and audio frames of the tracks it receives."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.pc = aiortc.RTCPeerConnection()
        self.connected, self.ended = asyncio.Event(), asyncio.Event()
        self.session = None
        self.numbers = []  # read out of the pictures, in the order of arrival
        self.sizes = set()
        self.audio_frames, self.audio_peak = 0, 0
        self.tasks = []
        self.news = asyncio.Event()  # set at each frame
        self.pc.on("track", self._on_track)
        self.pc.on("connectionstatechange", self._on_state)

    def _on_state(self):
        if self.pc.connectionState == "connected":
            self.connected.set()

    def _watch_dtls(self):
        # A close_notify closes the DTLS transport at once; the connection's own state follows it
        # only when ICE has given up as well.
        for transceiver in self.pc.getTransceivers():
            dtls = transceiver.receiver.transport
            dtls.on("statechange", lambda dtls=dtls: dtls.state == "closed" and self.ended.set())

    def _on_track(self, track):
        consume = self._video if track.kind == "video" else self._audio
        self.tasks.append(asyncio.ensure_future(consume(track)))

    async def _video(self, track):
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            self.sizes.add((frame.width, frame.height))
            self.numbers.append(read(frame) if (frame.width, frame.height) == (WIDTH, HEIGHT) else None)
            self.news.set()

    async def _audio(self, track):
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            self.audio_frames += 1
            self.audio_peak = max(self.audio_peak, int(numpy.abs(frame.to_ndarray()).max()))
            self.news.set()

    def receive(self, codec=None, rtx=True):
        """Ask for audio and video; of the video codecs only `codec`, and RTX or not."""
        self.pc.addTransceiver("audio", direction="recvonly")
        video = self.pc.addTransceiver("video", direction="recvonly")
        chosen = [c for c in aiortc.RTCRtpReceiver.getCapabilities("video").codecs
                  if (rtx and c.name == "rtx") or (c.name != "rtx" and codec in (None, c.name))]
        video.setCodecPreferences(chosen)

    def send(self, *tracks, codec=None):
        for track in tracks:
            transceiver = self.pc.addTransceiver(track, direction="sendonly")
            if codec and track.kind == "video":
                transceiver.setCodecPreferences(
                    [c for c in aiortc.RTCRtpSender.getCapabilities("video").codecs if c.name in (codec, "rtx")])

    async def post(self):
        """The relay's reply to the offer; the caller accepts it."""
        await self.pc.setLocalDescription(await self.pc.createOffer())
        loop = asyncio.get_event_loop()
        return await loop.run_in_executor(None, lambda: request(
            "POST", self.endpoint, self.pc.localDescription.sdp, {"Content-Type": SDP}))

    async def open(self, limit_s=60):
        reply = await self.post()
        assert reply.status == 201, reply
        self.session = self.endpoint.split("/wh")[0] + reply.headers["Location"]
        await self.pc.setRemoteDescription(aiortc.RTCSessionDescription(reply.body, "answer"))
        self._watch_dtls()
        await asyncio.wait_for(self.connected.wait(), limit_s)

    async def delete(self):
        loop = asyncio.get_event_loop()
        return await loop.run_in_executor(None, lambda: request("DELETE", self.session))

    async def until(self, what, condition, limit_s=60):
        """Wait for a condition that frames bring about."""
        async def watch():
            while not condition(self):
                self.news.clear()
                await self.news.wait()
        try:
            await asyncio.wait_for(watch(), limit_s)
        except asyncio.TimeoutError:
            raise AssertionError(f"after {limit_s} s still not: {what} ({self})") from None

    async def close(self):
        await self.pc.close()
        for task in self.tasks:
            task.cancel()

    def __repr__(self):
        return (f"{self.endpoint} {self.pc.connectionState}: {len(self.numbers)} pictures "
                f"{self.numbers[-3:]}, {self.audio_frames} audio frames, peak {self.audio_peak}")


def rises(numbers):
    """Read numbers never go back; the 16 bits do not wrap in a test."""
    return all(a <= b for a, b in zip(numbers, numbers[1:]))
