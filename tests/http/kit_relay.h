/* tests/http/kit_relay.h - the real HTTP side on a loopback port, in a thread of its own, and a client
 * that sends bytes as they are. */
#ifndef TESTS_HTTP_KIT_RELAY_H
#define TESTS_HTTP_KIT_RELAY_H

#include <stddef.h>
#include <stdint.h>

enum { RELAY_ANSWER_BYTES = 96 * 1024 };

/** Start with this YAML text over the defaults (http.listen is set to 127.0.0.1:0 unless the text
 *  names one). Fails the test when it cannot. */
void relay_start(const char *yaml);
void relay_stop(void);
/** Another configuration for the running relay; returns when it is in force. */
void relay_reload(const char *yaml);
/** Run `task` in the relay's thread; returns when it is done. */
void relay_do(void (*task)(void));
uint16_t relay_port(void);
uint16_t relay_admin_port(void);

/** A connected socket that gives up after fifteen seconds. */
int relay_connect(uint16_t port);
void relay_send(int fd, const char *bytes, size_t n);

/** Read one answer, or what came before the end of the connection. Returns `answer`, terminated. */
const char *relay_read(int fd, char answer[RELAY_ANSWER_BYTES], int is_head);

/** Connect, send, read one answer, close. The text is valid until the next call. */
const char *relay_ask(const char *request);
const char *relay_ask_port(uint16_t port, const char *request);

/** The status of an answer, 0 when there is none. */
int relay_status(const char *answer);

/** The value of a header field (to the line's end), in static storage; NULL when absent. */
const char *relay_field(const char *answer, const char *name);

#endif
