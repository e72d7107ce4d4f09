#!/usr/bin/python3
"""Media for clients without codecs of their own: GStreamer encodes into plain RTP, or decodes it.

role=publish: pictures and a tone go to the UDP ports of this host; role=play: what comes to them is decoded.
codec=, video=PORT audio=PORT; sizes=N: pictures in N sizes, the largest to video=, each next one of half the
size to a port SIZE_STEP further. The talk is that of client.mjs: "more" wants more decoded.
"""

import json
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

FRAMES, SOUNDS, LIMIT_S = 45, 50, 45
SIZE_STEP = 10
AUDIBLE_DB = -30
# A keyframe a second: some of these stacks leave it to the application to hear a request for one.
ENCODE = {
    "H264": "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=30 bitrate=800 "
            "! video/x-h264,profile=constrained-baseline ! rtph264pay config-interval=-1 aggregate-mode=zero-latency",
    "VP8": "vp8enc deadline=1 cpu-used=8 keyframe-max-dist=30 target-bitrate=800000 ! rtpvp8pay picture-id-mode=15-bit",
    "VP9": "vp9enc deadline=1 cpu-used=8 keyframe-max-dist=30 target-bitrate=800000 ! rtpvp9pay picture-id-mode=15-bit",
}
DECODE = {"H264": "rtph264depay ! avdec_h264", "VP8": "rtpvp8depay ! vp8dec", "VP9": "rtpvp9depay ! vp9dec"}


def publish(codec, video, audio, sizes):
    encoders = " ".join(
        f"t. ! queue ! videoscale ! video/x-raw,width={640 >> i},height={360 >> i} ! {ENCODE[codec]} mtu=1200 pt=96 "
        f"! udpsink host=127.0.0.1 port={int(video) + SIZE_STEP * i} sync=false" for i in range(sizes))
    return (f"videotestsrc is-live=true pattern=ball ! video/x-raw,width=640,height=360,framerate=30/1 ! videoconvert "
            f"! tee name=t {encoders} "
            "audiotestsrc is-live=true wave=sine freq=440 volume=0.5 ! audioconvert ! audioresample ! opusenc "
            f"! rtpopuspay pt=97 ! udpsink host=127.0.0.1 port={audio} sync=false")


def play(codec, video, audio, _sizes):
    source = "udpsrc address=127.0.0.1 port={} caps=application/x-rtp,media={},clock-rate={},encoding-name={},payload={}"
    return (source.format(video, "video", 90000, codec, 96) + " ! rtpjitterbuffer latency=100 "
            f"! {DECODE[codec]} ! fakesink name=video sync=false signal-handoffs=true " +
            source.format(audio, "audio", 48000, "OPUS", 97) + " ! rtpjitterbuffer latency=100 ! rtpopusdepay ! opusdec "
            "! level interval=100000000 ! fakesink name=audio sync=false signal-handoffs=true")


class Counts:
    def __init__(self):
        self.changed = threading.Condition()
        self.frames = self.sounds = 0

    def add(self, frames, sounds):
        with self.changed:
            self.frames, self.sounds = self.frames + frames, self.sounds + sounds
            self.changed.notify_all()

    def more(self):
        with self.changed:
            frames, sounds = self.frames + FRAMES, self.sounds + SOUNDS
            if not self.changed.wait_for(lambda: self.frames >= frames and self.sounds >= sounds, LIMIT_S):
                raise AssertionError(f"{self.frames} frames and {self.sounds} sounds decoded, not {frames} and {sounds}")


def loudest(bus):
    """The loudest level since the last call; errors of the pipeline are raised."""
    most = -1000.0
    while message := bus.pop():
        if message.type == Gst.MessageType.ERROR:
            raise AssertionError(message.parse_error()[0].message)
        structure = message.get_structure()
        if structure and structure.get_name() == "level":
            most = max(most, *structure.get_value("rms"))
    return most


def main():
    options = dict(word.split("=", 1) for word in sys.argv[1:])
    Gst.init(None)
    codec = options["codec"].upper()
    describe = publish if options["role"] == "publish" else play
    pipeline = Gst.parse_launch(describe(codec, options["video"], options["audio"], int(options["sizes"])))
    counts = Counts()
    if options["role"] == "play":
        pipeline.get_by_name("video").connect("handoff", lambda *_: counts.add(1, 0))
        pipeline.get_by_name("audio").connect("handoff", lambda *_: counts.add(0, 1))
    pipeline.set_state(Gst.State.PLAYING)
    print(json.dumps({"ok": True}), flush=True)
    for line in sys.stdin:
        try:
            if line.strip() == "more" and options["role"] == "play":
                counts.more()
                time.sleep(0.2)
                level = loudest(pipeline.get_bus())
                assert level > AUDIBLE_DB, f"the tone is too quiet: {level} dB"
            print(json.dumps({"ok": True}), flush=True)
        except AssertionError as error:
            print(json.dumps({"ok": False, "why": str(error)}), flush=True)
    pipeline.set_state(Gst.State.NULL)


if __name__ == "__main__":
    main()
