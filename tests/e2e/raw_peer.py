"""A WebRTC peer of single packets, for tests that send what no honest client sends.

Blocking, on one socket: HTTP by kit, STUN by hand, DTLS by OpenSSL on memory BIOs, SRTP by
libsrtp2. Nothing is sent but what the test asks for.
"""

import binascii
import hashlib
import hmac
import os
import re
import select
import socket
import struct
import time

import pylibsrtp
from aiortc.rtcdtlstransport import RTCCertificate
from OpenSSL import SSL

from kit import request

COOKIE = 0x2112A442
USERNAME, INTEGRITY, PRIORITY, USE_CANDIDATE = 0x0006, 0x0008, 0x0024, 0x0025
XOR_MAPPED, CONTROLLING, CONTROLLED, FINGERPRINT = 0x0020, 0x802A, 0x8029, 0x8028
REQUEST, INDICATION, SUCCESS = 0x0001, 0x0011, 0x0101
AUDIO_PT, VIDEO_PT, RTX_PT = 111, 96, 97
AUDIO_SSRC, VIDEO_SSRC, RTX_SSRC = 0x11110000, 0x22220000, 0x33330000
SDP, SDPFRAG = "application/sdp", "application/trickle-ice-sdpfrag"
VP8_KEY = bytes.fromhex("9080800110000a9d012a4001b4000000") + bytes(84)  # start of a key frame
VP8_DELTA = bytes.fromhex("90808002110000") + bytes(93)
CERTIFICATE = RTCCertificate.generateCertificate()


def attribute(kind, value=b""):
    return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)


def stun(kind, attributes=(), key=None, after=(), tid=None, fingerprint=True, claim=0):
    """A message; `after` goes behind MESSAGE-INTEGRITY, `claim` is added to the length field."""
    tid = tid or os.urandom(12)
    body = b"".join(attributes)

    def head(extra):
        return struct.pack("!HHI", kind, len(body) + extra + claim, COOKIE) + tid

    if key is not None:
        mac = hmac.new(key.encode(), head(24) + body, hashlib.sha1).digest()
        body += attribute(INTEGRITY, mac)
    body += b"".join(after)
    if fingerprint:
        crc = (binascii.crc32(head(8) + body) & 0xFFFFFFFF) ^ 0x5354554E
        body += attribute(FINGERPRINT, struct.pack("!I", crc))
    return head(0) + body


def rtp(pt, seq, timestamp, ssrc, payload=b"", marker=False, first=0x80):
    return struct.pack("!BBHII", first, marker << 7 | pt, seq & 0xFFFF, timestamp & 0xFFFFFFFF, ssrc) + payload


def rtcp(pt, count, body):
    assert len(body) % 4 == 0
    return struct.pack("!BBH", 0x80 | count, pt, len(body) // 4) + body


def nack(sender, media, pairs):
    return rtcp(205, 1, struct.pack("!II", sender, media) + b"".join(struct.pack("!HH", *p) for p in pairs))


def pli(sender, media):
    return rtcp(206, 1, struct.pack("!II", sender, media))


def offer(direction, ufrag, pwd, fingerprint):
    """Audio and video in one bundle."""
    media = []
    for mid, kind, pts, lines in (
            ("0", "audio", f"{AUDIO_PT}", [f"a=rtpmap:{AUDIO_PT} opus/48000/2"]),
            ("1", "video", f"{VIDEO_PT} {RTX_PT}", [
                f"a=rtpmap:{VIDEO_PT} VP8/90000", f"a=rtcp-fb:{VIDEO_PT} nack", f"a=rtcp-fb:{VIDEO_PT} nack pli",
                f"a=rtpmap:{RTX_PT} rtx/90000", f"a=fmtp:{RTX_PT} apt={VIDEO_PT}"])):
        media += [f"m={kind} 9 UDP/TLS/RTP/SAVPF {pts}", "c=IN IP4 0.0.0.0", f"a=mid:{mid}", f"a={direction}",
                  "a=rtcp-mux", *lines]
        if direction == "sendonly":
            ssrcs = (AUDIO_SSRC,) if kind == "audio" else (VIDEO_SSRC, RTX_SSRC)
            if kind == "video":
                media.append(f"a=ssrc-group:FID {VIDEO_SSRC} {RTX_SSRC}")
            media += [f"a=ssrc:{ssrc} cname:raw" for ssrc in ssrcs]
    return "\r\n".join([
        "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0 1", f"a=ice-ufrag:{ufrag}",
        f"a=ice-pwd:{pwd}", f"a=fingerprint:sha-256 {fingerprint}", "a=setup:actpass", *media, ""])


class RawPeer:
    def __init__(self, relay, kind, stream="x"):
        self.relay, self.kind, self.stream = relay, kind, stream
        self.ufrag, self.pwd = os.urandom(4).hex(), os.urandom(12).hex()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.to = ("127.0.0.1", relay.udp_port)
        self.tx = self.rx = None
        self.session = None

    # --- HTTP

    def offer(self):
        return offer("sendonly" if self.kind == "whip" else "recvonly", self.ufrag, self.pwd,
                     CERTIFICATE.getFingerprints()[0].value)

    def post(self):
        reply = request("POST", f"{self.relay.url}/{self.kind}/{self.stream}", self.offer(),
                        {"Content-Type": SDP})
        assert reply.status == 201, reply
        self.session = self.relay.url + reply.headers["Location"]
        self.remote_ufrag = re.search(r"a=ice-ufrag:(\S+)", reply.body)[1]
        self.remote_pwd = re.search(r"a=ice-pwd:(\S+)", reply.body)[1]
        self.ssrcs = [int(s) for s in re.findall(r"a=ssrc:(\d+) cname", reply.body)]
        return self

    def delete(self):
        return request("DELETE", self.session)

    # --- packets

    def send(self, datagram, to=None):
        try:
            self.socket.sendto(datagram, to or self.to)
        except ConnectionRefusedError:
            pass  # an ICMP error of an earlier datagram

    def receive(self, limit_s=1.0):
        """The next datagram, or None."""
        if not select.select([self.socket], [], [], limit_s)[0]:
            return None
        return self.socket.recv(4096)

    def binding(self, nominate=True, username=None, key=None, **more):
        attributes = [attribute(USERNAME, (username or f"{self.remote_ufrag}:{self.ufrag}").encode()),
                      attribute(PRIORITY, struct.pack("!I", 0x6E7F00FF)), attribute(CONTROLLING, b"12345678")]
        if nominate:
            attributes.append(attribute(USE_CANDIDATE))
        return stun(REQUEST, attributes, key or self.remote_pwd, **more)

    def answer_check(self, datagram):
        """Answer a Binding request of the relay's."""
        mapped = attribute(XOR_MAPPED, struct.pack("!BBHI", 0, 1, 0, 0))
        self.send(stun(SUCCESS, [mapped], self.pwd, tid=datagram[8:20]))

    def check(self, limit_s=20, **more):
        """Binding requests until one is answered."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            self.send(self.binding(**more))
            answer = self.receive(0.5)
            while answer is not None:
                if len(answer) > 20 and answer[:2] == b"\x01\x01":
                    return self
                answer = self.receive(0.05)
        raise AssertionError("no answer to a check")

    # --- DTLS

    def hello(self):
        """A ClientHello."""
        self._start()
        return self._flight()[0]

    def _start(self):
        context = CERTIFICATE._create_ssl_context()  # pylint: disable=protected-access
        self.ssl = SSL.Connection(context)
        self.ssl.set_connect_state()
        self.ssl.set_ciphertext_mtu(1200)
        self._step()

    def _step(self):
        try:
            self.ssl.do_handshake()
            return True
        except SSL.WantReadError:
            return False

    def _flight(self):
        """What OpenSSL wants to send, a record a datagram."""
        try:
            data = self.ssl.bio_read(65536)
        except SSL.WantReadError:
            return []
        records = []
        while data:
            n = 13 + struct.unpack("!H", data[11:13])[0]
            records.append(data[:n])
            data = data[n:]
        return records

    def handshake(self, inject=None, limit_s=20):
        """Complete DTLS; inject(peer, flight number, before or after it) may send what it likes."""
        self._start()
        end, flights, is_done, last = time.monotonic() + limit_s, 0, False, []
        while not is_done or flights < 2:
            records = self._flight()
            if records:
                last = records
                if inject:
                    inject(self, flights, False)
                for record in records:
                    self.send(record)
                if inject:
                    inject(self, flights, True)
                flights += 1
            if is_done:
                break
            datagram = self.receive(0.5)
            if datagram is None:
                assert time.monotonic() < end, f"no handshake ({flights} flights sent)"
                for record in last:
                    self.send(record)
            elif 20 <= datagram[0] <= 63:
                self.ssl.bio_write(datagram)
                is_done = self._step()
        material = self.ssl.export_keying_material(b"EXTRACTOR-dtls_srtp", 60)
        keys = material[:16], material[16:32], material[32:46], material[46:60]
        self.tx = pylibsrtp.Session(self._policy(keys[0] + keys[2], True))
        self.rx = pylibsrtp.Session(self._policy(keys[1] + keys[3], False))
        return self

    @staticmethod
    def _policy(key, is_tx):
        policy = pylibsrtp.Policy(
            key=key, ssrc_type=pylibsrtp.Policy.SSRC_ANY_OUTBOUND if is_tx else pylibsrtp.Policy.SSRC_ANY_INBOUND,
            srtp_profile=pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_80)
        policy.allow_repeat_tx, policy.window_size = is_tx, 4096
        return policy

    def connect(self, inject=None):
        self.post().check()
        return self.handshake(inject)

    # --- media

    def send_rtp(self, *args, **more):
        self.send(self.tx.protect(rtp(*args, **more)))

    def send_rtcp(self, packet):
        self.send(self.tx.protect_rtcp(packet))

    def media(self, limit_s=1.0):
        """The next RTP packet that opens, or None; answers the relay's checks meanwhile."""
        end = time.monotonic() + limit_s
        while (left := end - time.monotonic()) > 0:
            datagram = self.receive(left)
            if datagram is None:
                return None
            if datagram[0] < 4 and datagram[:2] == b"\x00\x01":
                self.answer_check(datagram)
            elif 128 <= datagram[0] <= 191 and not 192 <= datagram[1] <= 223:
                return self.rx.unprotect(datagram)
        return None

    def close(self):
        self.socket.close()


class TcpPeer(RawPeer):
    """The same over one connection to the relay's TCP port: each packet behind two bytes of length."""

    def __init__(self, relay, kind, stream="x"):
        super().__init__(relay, kind, stream)
        self.socket.close()
        self.connect_socket()

    def connect_socket(self):
        self.socket = socket.create_connection(("127.0.0.1", self.relay.tcp_port), 20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read = b""
        return self

    def send(self, datagram, to=None):
        assert to is None
        self.socket.sendall(struct.pack("!H", len(datagram)) + datagram)

    def receive(self, limit_s=1.0):
        """The next packet, or None: nothing in time. Raises when the relay has closed."""
        end = time.monotonic() + limit_s
        while True:
            if len(self.read) >= 2 and len(self.read) >= 2 + (n := struct.unpack("!H", self.read[:2])[0]):
                packet, self.read = self.read[2:2 + n], self.read[2 + n:]
                return packet
            left = max(end - time.monotonic(), 0)
            if not select.select([self.socket], [], [], left)[0]:
                return None
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionResetError("closed by the relay")
            self.read += more
