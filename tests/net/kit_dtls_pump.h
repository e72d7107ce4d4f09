/* tests/net/kit_dtls_pump.h - carrying datagrams between handshakes of ours and plain ones. */
#ifndef TESTS_NET_KIT_DTLS_PUMP_H
#define TESTS_NET_KIT_DTLS_PUMP_H

#include "tests/net/kit_plain_dtls.h"

/** Every step that is due now. */
void dtls_pump_step(uint64_t now_us, struct dtls *d);
/** Step `from`, hand all it has to say to `to`, which must take it. @return datagrams */
int dtls_pump_move(uint64_t now_us, struct dtls *from, struct dtls *to);
/** Back and forth until both are silent. */
void dtls_pump(uint64_t now_us, struct dtls *a, struct dtls *b);
void dtls_pump_plain(uint64_t now_us, struct dtls *d, struct plain_dtls *p);
/** What it has to say is lost. */
void dtls_pump_lose(struct dtls *d);

#endif
