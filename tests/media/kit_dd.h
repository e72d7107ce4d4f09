/* tests/media/kit_dd.h - writes dependency descriptors of the usual scalability modes. */
#ifndef TESTS_MEDIA_KIT_DD_H
#define TESTS_MEDIA_KIT_DD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIT_DD_BYTES = 255 };

/* LxTy: spatial layers refer to the one below in each picture; is_key: in key pictures only. */
struct kit_dd {
	unsigned spatial, temporal;
	bool is_key_mode;
	uint8_t offset;      /* template_id_offset */
	uint16_t next_frame; /* frame number of the next picture's lowest layer */
	uint16_t last[4][8]; /* frame number of the last frame of each layer */
};

/** Decode target of spatial layer s and temporal layer t, as the descriptor counts them. */
unsigned kit_dd_target(const struct kit_dd *dd, unsigned s, unsigned t);

/**
 * The descriptor of the first packet of a frame.
 *
 * @param is_key of a key picture: the structure comes with layer 0
 * @return bytes written to out
 */
size_t kit_dd_write(struct kit_dd *dd, unsigned s, unsigned t, bool is_key,
		    uint8_t out[KIT_DD_BYTES]);

/** All frames of the picture before are written. */
void kit_dd_next_picture(struct kit_dd *dd);

#endif
