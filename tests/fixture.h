/* tests/fixture.h - files under tests/fixtures; tests run from the project's root. */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <stddef.h>

/** The whole file in memory of exactly *len bytes; the caller frees. A missing file fails the test. */
char *fixture_read(const char *folder, const char *name, size_t *len);

typedef void fixture_visit(const char *name, const char *text, size_t len);

/** Calls visit for every file whose name ends in suffix. @return how many */
size_t fixture_each(const char *folder, const char *suffix, fixture_visit *visit);

#endif
