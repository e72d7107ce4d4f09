/* tests/bench/floor_constants.h - what a packet costs as a share of a plain sendto().
 *
 * Measured with AES-GCM by ipsec-mb, GRO at the receiver, 1,200-byte packets: a message alone costs
 * 0.85 of a sendto(), and each further segment of it 0.09. A floor that is far from this has a
 * fault of its own and must not be compared with.
 */
#ifndef BENCH_FLOOR_CONSTANTS_H
#define BENCH_FLOOR_CONSTANTS_H

#define FLOOR_SENDTO_PER_MESSAGE 0.76
#define FLOOR_SENDTO_PER_PACKET  0.09
#define FLOOR_TOLERANCE          0.20

#endif
