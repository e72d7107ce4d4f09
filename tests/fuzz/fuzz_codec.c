/* Payload inspection, the dependency descriptor and the layers allocation. The first byte chooses the
 * codec (or one of the two), the rest is the payload. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "media/codec.h"
#include "media/dd.h"
#include "media/red.h"
#include "media/vla.h"
#include "media/vp9.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Patched ids read back, and nothing else moved. */
static void check_patch(enum media_codec codec, uint8_t *payload, size_t len,
			const struct codec_info *before)
{
	const uint16_t mask = before->picture_id_bits == 15 ? 0x7fff : 0x7f;
	struct codec_info after;

	assert(!(before->flags & CODEC_HAS_PICTURE_ID) ||
	       before->picture_id_offset + before->picture_id_bits / 8u < len);
	assert(!(before->flags & CODEC_HAS_TL0PICIDX) || before->tl0picidx_offset < len);
	codec_patch_ids(payload, before, (uint16_t)(before->picture_id + 0x1234), 0x56);
	codec_inspect(codec, payload, len, &after);
	assert(after.flags == before->flags && after.descriptor_bytes == before->descriptor_bytes);
	assert(after.width == before->width && after.height == before->height);
	if (before->flags & CODEC_HAS_PICTURE_ID)
		assert(after.picture_id == ((before->picture_id + 0x1234) & mask));
	if (before->flags & CODEC_HAS_TL0PICIDX)
		assert(after.tl0picidx == 0x56);
	codec_patch_ids(payload, before, before->picture_id, before->tl0picidx);
}

/* What is found good has a primary block, also under another payload type. */
static void check_red(uint8_t *payload, size_t len)
{
	uint8_t pt = len ? payload[0] & 0x7f : 0;
	size_t n = red_header_bytes(payload, len, pt);
	size_t primary = n ? red_primary_offset(payload) : 0;
	uint8_t heads[RED_MAX_HEADER_BYTES];

	if (n == 0)
		return;
	assert(n <= RED_MAX_HEADER_BYTES && n <= primary && primary < len);
	assert(red_write_header(payload, pt ^ 1, heads) == n);
	memcpy(payload, heads, n);
	assert(red_header_bytes(payload, len, pt ^ 1) == n);
	assert(red_primary_offset(payload) == primary);
	red_write_header(payload, pt, heads);
	memcpy(payload, heads, n);
}

static void check_payload(enum media_codec codec, uint8_t *payload, size_t len)
{
	uint8_t *original = malloc(len ? len : 1);
	struct vp9_structure structure;
	struct codec_info info;
	bool ok = codec_inspect(codec, payload, len, &info);

	assert(original);
	memcpy(original, payload, len);
	assert(ok || !(info.flags & CODEC_KEYFRAME_START));
	assert(!(info.flags & CODEC_KEYFRAME_START) || info.flags & CODEC_FRAME_START);
	assert(len > 0 || !ok);
	assert(info.descriptor_bytes <= len);
	if (codec == CODEC_VP9 && info.flags & CODEC_HAS_STRUCTURE)
		assert(vp9_read_structure(payload, len, &structure) &&
		       structure.layer_count <= VP9_LAYERS);
	if (codec == CODEC_VP8 || codec == CODEC_VP9)
		check_patch(codec, payload, len, &info);
	if (codec == CODEC_RED)
		check_red(payload, len);
	assert(memcmp(original, payload, len) == 0);
	free(original);
}

/* Two descriptors in a row, so that the second refers to a structure the first one brought. */
static void check_descriptor(const uint8_t *bytes, size_t len)
{
	static struct dd_structure s, before;
	struct dd_info info;
	size_t at = len / 2;

	memset(&s, 0, sizeof(s));
	for (int i = 0; i < 2; i++) {
		const uint8_t *part = i == 0 ? bytes : bytes + at;
		enum dd_verdict verdict;

		before = s;
		verdict = dd_parse(part, i == 0 ? at : len - at, &s, &info);
		if (verdict != DD_OK || !info.has_structure) {
			assert(memcmp(&before, &s, sizeof(s)) == 0);
			continue;
		}
		assert(s.template_count >= 1 && s.template_count <= DD_MAX_TEMPLATES);
		assert(s.target_count >= 1 && s.target_count <= DD_MAX_TARGETS);
		assert(s.chain_count <= s.target_count && s.max_spatial_id < DD_MAX_SPATIAL);
		assert(info.has_frame && info.frame.fdiff_count <= DD_MAX_FDIFFS);
	}
}

static void check_allocation(const uint8_t *bytes, size_t len)
{
	struct vla vla;

	if (!vla_parse(bytes, len, &vla))
		return;
	assert(vla.stream_count <= VLA_STREAMS);
	assert(vla.stream_count == 0 || vla.stream < vla.stream_count);
	for (unsigned i = 0; i < (unsigned)VLA_STREAMS * VLA_SPATIAL; i++) {
		const struct vla_layer *layer = &vla.layers[i / VLA_SPATIAL][i % VLA_SPATIAL];

		assert(layer->temporal_count <= VLA_TEMPORAL);
		assert(layer->temporal_count == 0 || i / VLA_SPATIAL < vla.stream_count);
		assert((layer->width > 0) == (vla.has_resolutions && layer->temporal_count > 0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *payload;
	unsigned choice;

	if (size == 0)
		return 0;
	choice = data[0] % (CODECS + 2);
	/* One byte in front keeps the end exact for an empty payload too. */
	payload = malloc(size);
	if (!payload)
		return 0;
	memcpy(payload, data, size);
	if (choice == CODECS)
		check_descriptor(payload + 1, size - 1);
	else if (choice == CODECS + 1)
		check_allocation(payload + 1, size - 1);
	else
		check_payload((enum media_codec)choice, payload + 1, size - 1);
	free(payload);
	return 0;
}
