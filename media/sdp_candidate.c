#include "media/sdp.h"
#include "media/sdp_span.h"

static enum sdp_candidate_type type_of(struct sdp_span text)
{
	static const char *const names[] = { "host", "srflx", "prflx", "relay" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sdp_span_is_nocase(text, names[i]))
			return (enum sdp_candidate_type)i;
	}
	return SDP_TYPE_OTHER;
}

static enum sdp_transport transport_of(struct sdp_span text)
{
	if (sdp_span_is_nocase(text, "udp"))
		return SDP_UDP;
	return sdp_span_is_nocase(text, "tcp") ? SDP_TCP : SDP_TRANSPORT_OTHER;
}

/* RFC 8839 section 5.1: foundation component transport priority address port typ type ... */
bool sdp_candidate_parse(struct sdp_candidate *out, struct sdp_span value)
{
	struct sdp_span foundation = sdp_span_word(&value), component = sdp_span_word(&value);
	struct sdp_span transport = sdp_span_word(&value), priority = sdp_span_word(&value);
	struct sdp_span address = sdp_span_word(&value), port = sdp_span_word(&value);
	struct sdp_span typ = sdp_span_word(&value), type = sdp_span_word(&value);
	uint32_t number;

	memset(out, 0, sizeof(*out));
	if (!foundation.at || !type.at || !sdp_span_is_nocase(typ, "typ"))
		return false;
	if (!sdp_span_number(component, 65535, &number))
		return false;
	out->component = (uint16_t)number;
	if (!sdp_span_number(priority, UINT32_MAX, &out->priority))
		return false;
	if (!sdp_span_number(port, 65535, &number))
		return false;
	sdp_address_parse(&out->address, address);
	out->address.port = (uint16_t)number;
	out->address.transport = (uint8_t)transport_of(transport);
	out->type = (uint8_t)type_of(type);
	return true;
}

/* Unspecified, multicast and link-local addresses: nothing a session could be sent to. */
static bool is_reachable(const struct sdp_address *a)
{
	static const uint8_t zero[16];

	if (a->family == 4)
		return a->ip[0] != 0 && a->ip[0] < 224;
	if (a->family != 6 || memcmp(a->ip, zero, sizeof(zero)) == 0 || a->ip[0] == 0xff)
		return false;
	return !(a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80);
}

/* The active side names the discard port, RFC 6544 section 4.5. */
bool sdp_candidate_can_be_dialled(const struct sdp_candidate *c)
{
	return c->address.transport == SDP_TCP && c->component == 1 && c->address.port != 0 &&
	       c->address.port != 9 && is_reachable(&c->address);
}

bool sdp_candidate_is_usable(const struct sdp_candidate *c)
{
	return c->address.transport == SDP_UDP && c->component == 1 && c->address.port != 0 &&
	       is_reachable(&c->address);
}
