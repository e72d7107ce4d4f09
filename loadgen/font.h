/* loadgen/font.h - capital letters, digits and signs of 5 by 7 dots.
 *
 * Thread:  any; constant.
 */
#ifndef LOADGEN_FONT_H
#define LOADGEN_FONT_H

#include <stdint.h>

enum {
	FONT_COLUMNS = 5,
	FONT_ROWS = 7,
	FONT_ADVANCE = 6, /* columns from one letter to the next */
};

/** FONT_ROWS rows from the top, the left column in bit 4. Lower case reads as upper case; what
 *  has no shape of its own reads as '?'. Static. */
const uint8_t *font_rows(char letter);

#endif
