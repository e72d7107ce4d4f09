#include "tests/fixture.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIXTURE_MAX_BYTES = 1 << 20, FIXTURE_PATH_BYTES = 512 };

char *fixture_read(const char *folder, const char *name, size_t *len)
{
	char path[FIXTURE_PATH_BYTES];
	char *text = malloc(FIXTURE_MAX_BYTES);
	FILE *f;

	cr_assert(text);
	snprintf(path, sizeof(path), "tests/fixtures/%s/%s", folder, name);
	f = fopen(path, "rb");
	cr_assert(f, "%s", path);
	*len = fread(text, 1, FIXTURE_MAX_BYTES, f);
	fclose(f);
	text = realloc(text, *len ? *len : 1);
	cr_assert(text);
	return text;
}

size_t fixture_each(const char *folder, const char *suffix, fixture_visit *visit)
{
	char path[FIXTURE_PATH_BYTES];
	struct dirent *entry;
	size_t seen = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "tests/fixtures/%s", folder);
	dir = opendir(path);
	cr_assert(dir, "%s", path);
	while ((entry = readdir(dir))) {
		size_t name_len = strlen(entry->d_name), len;
		char *text;

		if (name_len < strlen(suffix) ||
		    strcmp(entry->d_name + name_len - strlen(suffix), suffix) != 0)
			continue;
		text = fixture_read(folder, entry->d_name, &len);
		visit(entry->d_name, text, len);
		free(text);
		seen++;
	}
	closedir(dir);
	return seen;
}
