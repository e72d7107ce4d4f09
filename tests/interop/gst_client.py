#!/usr/bin/python3
"""GStreamer's webrtcbin as a client: role=publish|play url= stream= codec= address="""

from talk import FRAMES, SOUNDS, codec, endpoint, options, serve

import gst_peer  # tests/e2e, found through talk

gst_peer.HOST = options["address"]
peer = gst_peer.Peer(endpoint)


def more():
    if options["role"] == "play":
        frames, sounds = peer.frames + FRAMES, peer.audio_buffers + SOUNDS
        peer.until(f"{frames} frames and {sounds} sounds", lambda p: (
            p.frames >= frames and p.audio_buffers >= sounds and p.loudest_db > -40), 45)


def begin():
    if missing := gst_peer.missing():
        raise AssertionError(f"GStreamer lacks {missing}")
    (peer.send if options["role"] == "publish" else peer.receive)(codec)
    peer.open(45)
    more()
    offer = peer.webrtc.get_property("local-description").sdp.as_text()
    return {"version": gst_peer.Gst.version_string().removeprefix("GStreamer "), "offer": offer}


def end():
    reply = peer.delete()
    assert reply.status == 200, reply
    peer.close()


serve(begin, {"more": more, "end": end})
