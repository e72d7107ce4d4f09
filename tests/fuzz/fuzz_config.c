/* Any text as the configuration file: it is loaded, or refused with one line; never both. */
#include <assert.h>
#include <stdint.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_loaded(const struct config *c)
{
	assert(c->udp.listen.count >= 1 && c->udp.listen.count <= CONFIG_LIST_MAX);
	assert(!c->http.cert == !c->http.key);
	assert((c->media.pad_bytes & (c->media.pad_bytes - 1)) == 0);
	assert(c->workers <= 256);
	assert(c->http.open || config_address_is_loopback(&c->http.listen) ||
	       (c->tokens.publish.count > 0 && c->tokens.watch.count > 0));
	for (size_t i = 0; i < c->tokens.publish.count; i++)
		assert(c->tokens.publish.items[i][0] != '\0');
	for (size_t i = 0; i < c->ice.servers.count; i++)
		assert(!strpbrk(c->ice.servers.items[i].url, "\r\n \"<>,;"));
	for (size_t i = 0; i < c->advertise.count; i++)
		assert(!config_address_is_wildcard(&c->advertise.items[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[CONFIG_ERROR_BYTES];
	struct config *c = NULL;
	char *copy = malloc(size ? size : 1);
	int err;

	assert(copy);
	memcpy(copy, data, size);
	err = config_parse(&c, copy, size, "fuzz.yaml", error);
	assert((err == 0) == (c != NULL));
	assert((err == 0) == (error[0] == '\0'));
	for (const char *p = error; *p; p++)
		assert((unsigned char)*p >= ' ');
	if (c)
		check_loaded(c);
	config_destroy(c);
	free(copy);
	return 0;
}
