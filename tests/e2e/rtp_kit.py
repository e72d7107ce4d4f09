"""FFmpeg and GStreamer with plain RTP: what they send, and what arrives at them."""

import contextlib
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
