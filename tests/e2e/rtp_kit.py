"""FFmpeg and GStreamer with plain RTP: what they send, and what arrives at them."""

import contextlib
import json
import os
import socket
import subprocess

from kit import request, until

SDP = "application/sdp"
PICTURE = "testsrc=size=640x360:rate=30"
SOUND = "sine=frequency=440:sample_rate=48000"
VIDEO = ("libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-profile:v", "baseline", "-pix_fmt", "yuv420p",
         "-g", "60", "-b:v", "800k")
AUDIO = ("libopus", "-ac", "2", "-b:a", "96k")


def free_ports(count):
    """First of so many neighbouring UDP ports, an even one, that nobody uses now."""
    for port in range(21000, 60000, count + count % 2):
        with contextlib.ExitStack() as stack:
            try:
                for at in range(count):
                    taken = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                    taken.bind(("127.0.0.1", port + at))
            except OSError:
                continue
            return port
    raise AssertionError("no free ports")


def settings(first, count, more=""):
    return f"drain_ms: 0\nrtp:\n  port_min: {first}\n  port_max: {first + count - 1}\n{more}"


class Ffmpeg:
    """`ffmpeg -re ... -f rtp`: H264 and Opus, each to a port of the relay; the SDP that it writes."""

    def __init__(self, folder, video_port, audio_port, seconds=120):
        self.sdp_path = os.path.join(folder, "ffmpeg.sdp")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.sdp_path)
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "ffmpeg", "-nostdin", "-loglevel", "error", "-re",
             "-f", "lavfi", "-i", PICTURE, "-re", "-f", "lavfi", "-i", SOUND, "-t", str(seconds),
             "-map", "0:v", "-c:v", *VIDEO, "-f", "rtp", f"rtp://127.0.0.1:{video_port}",
             "-map", "1:a", "-c:a", *AUDIO, "-f", "rtp", f"rtp://127.0.0.1:{audio_port}",
             "-sdp_file", self.sdp_path])
        self.sdp = until("FFmpeg describes what it sends", self._read_sdp)

    def _read_sdp(self):
        assert self.process.poll() is None, "FFmpeg ended"
        with contextlib.suppress(FileNotFoundError), open(self.sdp_path, encoding="utf-8") as file:
            text = file.read()
            return text if "m=audio" in text and "m=video" in text and text.endswith("\n") else None
        return None

    def close(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def feed(relay, stream, sdp):
    answer = request("POST", f"{relay.url}/api/streams/{stream}/rtp-in", sdp, {"Content-Type": SDP})
    assert answer.status == 201, (answer, sdp)
    return answer


def send_to(relay, stream, **target):
    """Have the stream sent to ports of this host; the SDP for whoever receives it."""
    body = json.dumps({"address": "127.0.0.1", **target})
    answer = request("POST", f"{relay.url}/api/streams/{stream}/rtp-out", body, {"Content-Type": "application/json"})
    assert answer.status == 201, (answer, target)
    return answer


def ffmpeg_decodes(folder, sdp, frames, sounds, limit_s=60):
    """FFmpeg opens the SDP and decodes so many pictures and pieces of sound; how many it says it got."""
    sdp_path = os.path.join(folder, "receive.sdp")
    lists = [os.path.join(folder, name) for name in ("video.crc", "audio.crc")]
    with open(sdp_path, "w", encoding="utf-8") as file:
        file.write(sdp)
    subprocess.run(
        ["setpriv", "--pdeathsig", "KILL", "ffmpeg", "-nostdin", "-loglevel", "fatal", "-y",
         "-protocol_whitelist", "file,rtp,udp", "-i", sdp_path,
         "-map", "0:v", "-frames:v", str(frames), "-f", "framecrc", lists[0],
         "-map", "0:a", "-frames:a", str(sounds), "-f", "framecrc", lists[1]], check=True, timeout=limit_s)
    counts = []
    for path in lists:
        with open(path, encoding="utf-8") as file:
            counts.append(sum(not line.startswith("#") for line in file))
    return counts


class GstReceiver:
    """GStreamer opens the SDP; counts what comes out of the decoders."""

    def __init__(self, folder, sdp):
        from gst_peer import Gst  # needs GStreamer, which FFmpeg's side does not
        self.gst = Gst
        path = os.path.join(folder, "gst.sdp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(sdp)
        self.counts = {"video": 0, "audio": 0}
        self.pipeline = Gst.parse_launch(
            f"filesrc location={path} ! sdpdemux name=s "
            "rtph264depay name=video ! avdec_h264 ! fakesink name=pictures signal-handoffs=true sync=false "
            "rtpopusdepay name=audio ! opusdec ! fakesink name=sounds signal-handoffs=true sync=false")
        for name, kind in (("pictures", "video"), ("sounds", "audio")):
            self.pipeline.get_by_name(name).connect("handoff", self._count, kind)
        self.pipeline.get_by_name("s").connect("pad-added", self._link)
        assert self.pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE

    def _count(self, _sink, _buffer, _pad, kind):
        self.counts[kind] += 1

    def _link(self, _demuxer, pad):
        media = pad.query_caps(None).get_structure(0).get_string("media")
        pad.link(self.pipeline.get_by_name(media).get_static_pad("sink"))

    def close(self):
        self.pipeline.set_state(self.gst.State.NULL)
