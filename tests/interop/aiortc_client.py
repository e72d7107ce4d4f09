#!/usr/bin/python3
"""aiortc as a client: role=publish|play url= stream= codec= address="""

import asyncio
import threading

from talk import FRAMES, SOUNDS, codec, endpoint, options, serve

import aiortc
import aioice.ice
import aiortc_peer  # tests/e2e, found through talk

aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [options["address"]]
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def wait(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)


async def create():
    made = aiortc_peer.Peer(endpoint)
    if options["role"] == "publish":
        made.send(aiortc_peer.Tone(), aiortc_peer.DrawnVideo(), codec=codec)
    else:
        made.receive(codec)
    await made.open(45)
    return made


peer = None


async def see_more():
    frames, sounds = len(peer.numbers) + FRAMES, peer.audio_frames + SOUNDS
    await peer.until(f"{frames} frames and {sounds} sounds", lambda p: (
        len(p.numbers) >= frames and p.audio_frames >= sounds and p.audio_peak > 1000), 45)


def more():
    if options["role"] == "play":
        wait(see_more())


def begin():
    global peer  # pylint: disable=global-statement
    peer = wait(create())
    more()
    return {"version": aiortc.__version__, "offer": peer.pc.localDescription.sdp}


async def leave():
    reply = await peer.delete()
    assert reply.status == 200, reply
    await peer.close()


serve(begin, {"more": more, "end": lambda: wait(leave())})
