/* tests/corpus.h - public sample packets that lie beside the project, when they do.
 *
 * The folder is $CORPORA, or ../shared/corpora of where the test runs. Where it is missing a test
 * prints one line and leaves these samples out.
 */
#ifndef TESTS_CORPUS_H
#define TESTS_CORPUS_H

#include <stddef.h>
#include <stdint.h>

/** Gets bytes in memory of exactly len bytes, so that sanitizers see a read past the end. */
typedef void corpus_visit(const char *name, const uint8_t *bytes, size_t len, void *ctx);

/** Calls visit for every file of a folder. @return files seen; 0 (and a line) when missing */
size_t corpus_each_file(const char *folder, corpus_visit *visit, void *ctx);

/** Calls visit for the UDP payload of every packet of an Ethernet capture, in order. */
size_t corpus_each_datagram(const char *capture, corpus_visit *visit, void *ctx);

#endif
