/* tests/bench/floor_record.c - the relay's messages as they are, seen on the loopback device.
 *
 * A GSO message crosses that device in one piece, with the size of its segments in the header that
 * PACKET_VNET_HDR puts in front. RTP headers are in clear, so each segment tells its kind and, by
 * the marker bit, whether it ends a frame.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "pool/bytes.h"
#include "tests/bench/floor_run.h"

enum {
	ETHER_BYTES = 14,
	UDP_BYTES = 8,
	GAP_US = 500, /* messages closer together left in one visit of the viewer */
	RTCP_FIRST_TYPE = 64,
	RTCP_LAST_TYPE = 95,
	MAX_AUDIO_PAYLOAD_BYTES = 1276, /* of one Opus frame */
};

struct recording {
	FILE *out;
	unsigned tag_bytes;
	uint64_t start_us, last_us;
	uint32_t video_ssrc;
	bool has_video;
	unsigned long messages, segments;
};

/* IPv4 UDP from `port` to `viewer`; for any other packet the filter costs a few instructions. */
static int attach_filter(int fd, uint16_t port, struct in_addr viewer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ETHER_BYTES + 16),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(viewer.s_addr), 0, 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETHER_BYTES + 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 4),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, ETHER_BYTES),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, ETHER_BYTES),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

static int open_device(uint16_t port, struct in_addr viewer, int *fd)
{
	struct sockaddr_ll name = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	int one = 1, buffer_bytes = 8 << 20, err;

	name.sll_ifindex = (int)if_nametoindex("lo");
	/* Protocol 0: nothing arrives before the filter is in place and the device is bound. */
	*fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return -errno;
	if (setsockopt(*fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		return -errno;
	(void)setsockopt(*fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof(buffer_bytes));
	err = attach_filter(*fd, port, viewer);
	if (err)
		return err;
	return bind(*fd, (struct sockaddr *)&name, sizeof(name)) ? -errno : 0;
}

static size_t header_length(const uint8_t *rtp, size_t len)
{
	size_t bytes = 12 + 4 * (size_t)(rtp[0] & 0x0f);

	if ((rtp[0] & 0x10) && bytes + 4 <= len)
		bytes += 4 + 4 * (size_t)be16_read(rtp + bytes + 2);
	return bytes;
}

/* Audio is what is never longer than one Opus frame and is of another source than video: the source
 * of the first packet that comes in a message with others, or that is longer. */
static void note_source(struct recording *r, const uint8_t *rtp, size_t len, bool has_company)
{
	if (r->has_video || (!has_company && len <= MAX_AUDIO_PAYLOAD_BYTES / 2))
		return;
	r->video_ssrc = be32_read(rtp + 8);
	r->has_video = true;
}

static void write_segment(struct recording *r, const uint8_t *rtp, size_t len)
{
	size_t header = header_length(rtp, len), payload;
	bool is_video = be32_read(rtp + 8) == r->video_ssrc;

	if (header + r->tag_bytes >= len)
		return;
	payload = len - header - r->tag_bytes;
	if (payload < TRACE_MIN_PAYLOAD_BYTES)
		payload = TRACE_MIN_PAYLOAD_BYTES;
	fprintf(r->out, "%s %zu %zu%s\n", is_video ? "video" : "audio", header, payload,
		is_video && (rtp[1] & 0x80) ? " end" : "");
	r->segments++;
}

static void write_message(struct recording *r, const uint8_t *bytes, size_t len, size_t segment,
			  uint64_t now_us)
{
	if (len < 12 || bytes[0] >> 6 != 2 ||
	    ((bytes[1] & 0x7f) >= RTCP_FIRST_TYPE && (bytes[1] & 0x7f) <= RTCP_LAST_TYPE))
		return;
	note_source(r, bytes, segment < len ? segment : len, segment < len);
	if (!r->has_video)
		return;
	if (!r->start_us)
		r->start_us = now_us;
	if (r->messages == 0 || now_us - r->last_us > GAP_US)
		fprintf(r->out, "pass %llu\n", (unsigned long long)(now_us - r->start_us));
	fprintf(r->out, "message\n");
	for (size_t at = 0; at + 12 <= len; at += segment)
		write_segment(r, bytes + at, len - at < segment ? len - at : segment);
	r->messages++;
	r->last_us = now_us;
}

static void take(struct recording *r, const uint8_t *frame, size_t len, uint64_t now_us)
{
	struct virtio_net_hdr vnet;
	size_t ip = sizeof(vnet) + ETHER_BYTES, udp, payload, segment;

	if (len < ip + 20)
		return;
	memcpy(&vnet, frame, sizeof(vnet));
	udp = ip + 4 * (size_t)(frame[ip] & 0x0f);
	payload = udp + UDP_BYTES;
	if (len <= payload)
		return;
	segment = vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE && vnet.gso_size ? vnet.gso_size
									    : len - payload;
	write_message(r, frame + payload, len - payload, segment, now_us);
}

int floor_record(uint16_t port, struct in_addr viewer, double seconds, unsigned tag_bytes,
		 FILE *out)
{
	struct recording r = { .out = out, .tag_bytes = tag_bytes };
	static uint8_t frame[128 * 1024];
	uint64_t end_us;
	int fd = -1, err = open_device(port, viewer, &fd);

	end_us = clock_now_us() + (uint64_t)(seconds * 1e6);
	while (!err && clock_now_us() < end_us) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t got =
		    poll(&p, 1, 50) > 0 ? recv(fd, frame, sizeof(frame), MSG_DONTWAIT) : 0;

		if (got > (ssize_t)sizeof(struct virtio_net_hdr))
			take(&r, frame, (size_t)got, clock_now_us());
	}
	if (fd >= 0)
		close(fd);
	if (!err && r.messages == 0)
		err = -ENODATA;
	if (!err)
		fprintf(out, "period %llu\n", (unsigned long long)(r.last_us - r.start_us + 10000));
	return err;
}
