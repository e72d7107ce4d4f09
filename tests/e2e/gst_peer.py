"""WHIP and WHEP on GStreamer's webrtcbin, for tests that count what arrives.

Thread: GLib's main loop runs in a thread of its own; the methods are for the test's thread.
"""

import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

from kit import request  # noqa: E402

Gst.init(None)
threading.Thread(target=GLib.MainLoop().run, daemon=True).start()

NEEDED = ("webrtcbin", "nicesrc", "dtlsdec", "srtpdec", "videotestsrc", "audiotestsrc", "opusenc", "opusdec",
          "rtph264pay", "rtph264depay", "avdec_h264", "x264enc", "vp8enc", "vp8dec", "rtpvp8pay",
          "rtpvp8depay", "rtpopuspay", "rtpopusdepay", "level")
SDP = "application/sdp"
HOST = "127.0.0.1"  # where an agent gathers its candidate
PUBLISH = {
    "H264": "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=300 bitrate=800 "
            "! video/x-h264,profile=constrained-baseline ! rtph264pay config-interval=-1 pt=96 "
            "aggregate-mode=zero-latency ! application/x-rtp,media=video,encoding-name=H264,payload=96",
    "VP8": "vp8enc deadline=1 cpu-used=8 keyframe-max-dist=300 target-bitrate=800000 error-resilient=default "
           "! rtpvp8pay pt=96 ! application/x-rtp,media=video,encoding-name=VP8,payload=96",
}
SOUND = ("audiotestsrc is-live=true wave=sine freq=440 volume=0.5 ! audioconvert ! audioresample ! opusenc "
         "! rtpopuspay pt=97 ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97")
PICTURE = "videotestsrc is-live=true pattern=ball ! video/x-raw,width=640,height=360,framerate=30/1 ! videoconvert"
PLAY = {
    "H264": "application/x-rtp,media=video,encoding-name=H264,clock-rate=90000,payload=96,"
            "packetization-mode=(string)1,profile-level-id=(string)42e01f",
    "VP8": "application/x-rtp,media=video,encoding-name=VP8,clock-rate=90000,payload=96",
}
DECODE = {"H264": "rtph264depay ! avdec_h264", "VP8": "rtpvp8depay ! vp8dec"}
_agents = []


def missing():
    return [name for name in NEEDED if not Gst.ElementFactory.find(name)]


class Peer:
    """One session. Counts the frames and the samples that come out of the decoders."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.session = None
        self.changed = threading.Condition()
        self.frames, self.audio_buffers, self.loudest_db = 0, 0, -1000.0
        self.caps, self.error = "", ""
        self.pipeline = self.webrtc = None
        self.gathered, self.negotiable = threading.Event(), threading.Event()

    def send(self, codec):
        self._start(f"webrtcbin name=w bundle-policy=max-bundle {SOUND} ! w. {PICTURE} ! {PUBLISH[codec]} ! w.")
        for at in range(2):
            transceiver = self.webrtc.emit("get-transceiver", at)
            transceiver.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)

    def receive(self, codec):
        self._start("webrtcbin name=w bundle-policy=max-bundle")
        self.webrtc.connect("pad-added", self._on_pad)
        direction = GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY
        audio = "application/x-rtp,media=audio,encoding-name=OPUS,clock-rate=48000,encoding-params=(string)2,payload=97"
        for caps in (audio, PLAY[codec]):
            self.webrtc.emit("add-transceiver", direction, Gst.Caps.from_string(caps))

    def open(self, limit_s=60):
        self._offer()
        if not self.gathered.wait(limit_s):
            raise AssertionError("no candidates")
        offer = self.webrtc.get_property("local-description").sdp.as_text()
        reply = request("POST", self.endpoint, offer, {"Content-Type": SDP})
        assert reply.status == 201, (reply, offer)
        self.session = self.endpoint.split("/wh")[0] + reply.headers["Location"]
        _, message = GstSdp.SDPMessage.new_from_text(reply.body)
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message)
        promise = Gst.Promise.new()
        self.webrtc.emit("set-remote-description", answer, promise)
        assert promise.wait() == Gst.PromiseResult.REPLIED, "the answer was refused"
        error = promise.get_reply()
        assert not (error and error.has_field("error")), error.to_string()
        self.until("connected", lambda p: p.webrtc.get_property("connection-state").value_nick == "connected", limit_s)

    def delete(self):
        return request("DELETE", self.session)

    def close(self):
        if self.pipeline:
            self.pipeline.set_state(Gst.State.NULL)

    def until(self, what, condition, limit_s=60):
        with self.changed:
            done = self.changed.wait_for(lambda: self.error or condition(self), limit_s)
        assert done and not self.error, f"after {limit_s} s still not: {what} ({self})"

    def _start(self, description):
        parsed = Gst.parse_launch(description)
        self.pipeline = parsed
        if not isinstance(parsed, Gst.Pipeline):  # an element alone comes without one
            self.pipeline = Gst.Pipeline.new(None)
            self.pipeline.add(parsed)
        self.webrtc = self.pipeline.get_by_name("w")
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self._on_error)
        bus.connect("message::element", self._on_element)
        self.webrtc.connect("on-negotiation-needed", lambda _webrtc: self.negotiable.set())
        for name in ("connection-state", "ice-gathering-state"):
            self.webrtc.connect(f"notify::{name}", self._on_state)
        # libnice leaves loopback out, and a machine may have nothing else. The agent has a floating
        # reference, which this one sinks: dropped, it would take the agent away from webrtcbin.
        _agents.append(self.webrtc.get_property("ice-agent"))
        _agents[-1].emit("add-local-ip-address", HOST)
        assert self.pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE, description

    def _offer(self):
        # A sender's offer waits until the payloaders have said what they send.
        if not self.negotiable.wait(60):
            raise AssertionError("nothing to negotiate")
        created, set_up = Gst.Promise.new(), Gst.Promise.new()
        self.webrtc.emit("create-offer", None, created)
        assert created.wait() == Gst.PromiseResult.REPLIED, "no offer"
        reply = created.get_reply()  # owns the offer
        self.webrtc.emit("set-local-description", reply.get_value("offer"), set_up)
        assert set_up.wait() == Gst.PromiseResult.REPLIED, "the offer was refused"
        self._on_state(self.webrtc, None)

    def _on_state(self, webrtc, _property):
        if webrtc.get_property("ice-gathering-state").value_nick == "complete":
            self.gathered.set()
        with self.changed:
            self.changed.notify_all()

    def _on_error(self, _bus, message):
        error, details = message.parse_error()
        with self.changed:
            self.error = f"{error.message} {details}"
            self.changed.notify_all()

    def _on_element(self, _bus, message):
        level = message.get_structure()
        if level and level.get_name() == "level":
            with self.changed:
                self.loudest_db = max(self.loudest_db, max(level.get_value("rms")))
                self.changed.notify_all()

    def _on_pad(self, _webrtc, pad):
        if pad.direction != Gst.PadDirection.SRC:
            return
        caps = pad.get_current_caps().get_structure(0)
        if caps.get_string("media") == "video":
            chain = f"{DECODE[caps.get_string('encoding-name')]} ! fakesink name=sink sync=false signal-handoffs=true"
            count = self._on_frame
        else:
            chain = ("rtpopusdepay ! opusdec ! level interval=100000000 "
                     "! fakesink name=sink sync=false signal-handoffs=true")
            count = self._on_sound
        with self.changed:
            self.caps += caps.get_string("encoding-name") + " "
        tail = Gst.parse_bin_from_description(chain, True)
        tail.get_by_name("sink").connect("handoff", count)
        self.pipeline.add(tail)
        tail.sync_state_with_parent()
        pad.link(tail.get_static_pad("sink"))

    def _on_frame(self, _sink, _buffer, _pad):
        with self.changed:
            self.frames += 1
            self.changed.notify_all()

    def _on_sound(self, _sink, _buffer, _pad):
        with self.changed:
            self.audio_buffers += 1
            self.changed.notify_all()

    def __repr__(self):
        return (f"{self.endpoint}: {self.frames} frames, {self.audio_buffers} audio buffers, "
                f"{self.loudest_db:.1f} dB, {self.caps}{self.error}")


