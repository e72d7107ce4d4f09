#include "tests/corpus.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/bytes.h"

enum {
	PATH_BYTES = 512,
	FILE_MAX_BYTES = 1 << 20,
	PCAP_HEADER_BYTES = 24,
	PCAP_RECORD_BYTES = 16,
	ETHERNET_BYTES = 14,
	UDP_BYTES = 8,
};

static void path_of(char *out, const char *folder, const char *name)
{
	const char *root = getenv("CORPORA");
	int n = snprintf(out, PATH_BYTES, "%s/%s%s%s", root && *root ? root : "../shared/corpora",
			 folder, name ? "/" : "", name ? name : "");

	cr_assert(n > 0 && n < PATH_BYTES);
}

/* @return a buffer of exactly *len bytes, the caller's; NULL when there is no such file */
static uint8_t *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes, *exact;

	if (!f)
		return NULL;
	bytes = malloc(FILE_MAX_BYTES);
	cr_assert(bytes);
	*len = fread(bytes, 1, FILE_MAX_BYTES, f);
	fclose(f);
	exact = realloc(bytes, *len ? *len : 1);
	cr_assert(exact);
	return exact;
}

size_t corpus_each_file(const char *folder, corpus_visit *visit, void *ctx)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	size_t seen = 0;
	DIR *dir;

	path_of(path, folder, NULL);
	dir = opendir(path);
	if (!dir) {
		printf("skipped: no %s\n", path);
		return 0;
	}
	while ((entry = readdir(dir))) {
		uint8_t *bytes;
		size_t len;

		if (entry->d_name[0] == '.')
			continue;
		path_of(path, folder, entry->d_name);
		bytes = read_file(path, &len);
		cr_assert(bytes, "%s", path);
		visit(entry->d_name, bytes, len, ctx);
		free(bytes);
		seen++;
	}
	closedir(dir);
	return seen;
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static void visit_frame(const char *name, const uint8_t *frame, size_t len, corpus_visit *visit,
			void *ctx)
{
	size_t at = ETHERNET_BYTES;
	size_t udp_bytes;
	uint8_t *exact;

	cr_assert(len > at + 20 && be16_read(frame + 12) == 0x0800 && frame[at + 9] == 17);
	at += (size_t)(frame[at] & 0x0f) * 4;
	cr_assert(len >= at + UDP_BYTES);
	udp_bytes = be16_read(frame + at + 4);
	cr_assert(udp_bytes >= UDP_BYTES && at + udp_bytes <= len);
	exact = malloc(udp_bytes - UDP_BYTES + 1);
	cr_assert(exact);
	memcpy(exact + 1, frame + at + UDP_BYTES, udp_bytes - UDP_BYTES);
	visit(name, exact + 1, udp_bytes - UDP_BYTES, ctx);
	free(exact);
}

size_t corpus_each_datagram(const char *capture, corpus_visit *visit, void *ctx)
{
	char path[PATH_BYTES];
	size_t at = PCAP_HEADER_BYTES;
	size_t seen = 0;
	uint8_t *file;
	size_t len;

	path_of(path, "str0m-pcaps", capture);
	file = read_file(path, &len);
	if (!file) {
		printf("skipped: no %s\n", path);
		return 0;
	}
	cr_assert(len >= at && le32(file) == 0xa1b2c3d4, "%s: not a little-endian pcap", path);
	while (at + PCAP_RECORD_BYTES <= len) {
		size_t frame_bytes = le32(file + at + 8);

		at += PCAP_RECORD_BYTES;
		cr_assert(frame_bytes <= len - at);
		visit_frame(capture, file + at, frame_bytes, visit, ctx);
		at += frame_bytes;
		seen++;
	}
	free(file);
	return seen;
}
