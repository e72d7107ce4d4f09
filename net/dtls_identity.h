/* net/dtls_identity.h - what only the handshake needs of an identity. Internal to net/dtls*. */
#ifndef NET_DTLS_IDENTITY_H
#define NET_DTLS_IDENTITY_H

#include <openssl/ssl.h>

#include "net/dtls.h"

/** Shared by all handshakes of the identity in that role; lives as long as the reference. */
SSL_CTX *dtls_identity_context(const struct dtls_identity *id, enum dtls_role role);

/** Number of identities alive. */
uint32_t dtls_identity_live(void);

/** Does the certificate have that fingerprint? Takes the same time wherever they differ. */
bool dtls_fingerprint_is_of(const struct dtls_fingerprint *f, const X509 *certificate);

#endif
