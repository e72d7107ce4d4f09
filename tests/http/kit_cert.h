/* tests/http/kit_cert.h - a certificate made for one test, in files that the test removes. */
#ifndef TESTS_HTTP_KIT_CERT_H
#define TESTS_HTTP_KIT_CERT_H

struct cert_files {
	char cert[32];
	char key[32];
};

void cert_files_init(struct cert_files *f);
void cert_files_fini(struct cert_files *f);

/** The answer to a request over TLS; "" when the handshake fails. Valid until the next call.
 *  @param version TLS1_1_VERSION, TLS1_2_VERSION, ...: the only one the client speaks */
const char *relay_ask_tls(const char *request, int version);

#endif
