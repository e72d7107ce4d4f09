/* net/dtls_bio.h - datagrams between an SSL object and the queues of its handshake. Internal. */
#ifndef NET_DTLS_BIO_H
#define NET_DTLS_BIO_H

#include <openssl/bio.h>

struct dtls_handshake;

/** Reads `h->reading` once, writes to `h->out`. @return NULL: out of memory */
BIO *dtls_bio_create(struct dtls_handshake *h);

#endif
