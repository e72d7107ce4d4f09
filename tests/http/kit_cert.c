#include "tests/http/kit_cert.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include "tests/http/kit_relay.h"

static FILE *file_open(char path[32])
{
	int fd;
	FILE *f;

	memcpy(path, "/tmp/test_http.XXXXXX", 22);
	fd = mkstemp(path);
	cr_assert(fd >= 0);
	f = fdopen(fd, "w");
	cr_assert_not_null(f);
	return f;
}

void cert_files_init(struct cert_files *files)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	FILE *f;

	cr_assert(key && cert);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	cr_assert(X509_set_version(cert, 2) && X509_set_pubkey(cert, key) &&
		  X509_sign(cert, key, EVP_sha256()));
	f = file_open(files->cert);
	cr_assert(PEM_write_X509(f, cert));
	fclose(f);
	f = file_open(files->key);
	cr_assert(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
	fclose(f);
	X509_free(cert);
	EVP_PKEY_free(key);
}

void cert_files_fini(struct cert_files *files)
{
	unlink(files->cert);
	unlink(files->key);
}

const char *relay_ask_tls(const char *request, int version)
{
	static char answer[RELAY_ANSWER_BYTES];
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl;
	int fd = relay_connect(relay_port());
	int n = 0;

	cr_assert_not_null(ctx);
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
	ssl = SSL_new(ctx);
	cr_assert(ssl && SSL_set_fd(ssl, fd));
	if (SSL_connect(ssl) == 1 && SSL_write(ssl, request, (int)strlen(request)) > 0)
		n = SSL_read(ssl, answer, sizeof(answer) - 1);
	answer[n > 0 ? n : 0] = '\0';
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	return answer;
}
