#include "tests/http/kit_relay.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/http.h"
#include "tests/http/kit_registry.h"

static struct loop *loop;
static struct http *http;
static struct config *config;
static struct loop_waker *waker;
static pthread_t thread;

static struct config *next;     /* for relay_reload(), then NULL again */
static void (*next_task)(void); /* for relay_do(), likewise */
static sem_t done;

static void on_wake(void *arg)
{
	(void)arg;
	if (next_task) {
		next_task();
	} else if (next) {
		cr_assert_eq(http_reload(http, next), 0);
		config_destroy(config);
		config = next;
	} else {
		loop_stop(loop);
		return;
	}
	next_task = NULL;
	next = NULL;
	sem_post(&done);
}

static void *run(void *arg)
{
	(void)arg;
	loop_run(loop);
	return NULL;
}

static struct config *config_of(const char *yaml)
{
	char error[CONFIG_ERROR_BYTES];
	char text[4096];
	struct config *c;

	snprintf(text, sizeof(text), "%s%s",
		 strstr(yaml, "http:") ? "" : "http: {listen: '127.0.0.1:0'}\n", yaml);
	cr_assert_eq(config_parse(&c, text, strlen(text), "test", error), 0, "%s", error);
	return c;
}

void relay_start(const char *yaml)
{
	char why[HTTP_ERROR_BYTES];

	config = config_of(yaml);
	cr_assert_eq(loop_create(&loop), 0);
	cr_assert_eq(loop_waker_open(loop, &waker, on_wake, NULL), 0);
	cr_assert_eq(http_create(&http, loop, config, NULL, why), 0, "%s", why);
	cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
}

void relay_stop(void)
{
	loop_wake(waker);
	pthread_join(thread, NULL);
	http_destroy(http);
	loop_waker_close(waker);
	loop_destroy(loop);
	config_destroy(config);
}

static void wake_and_wait(void)
{
	cr_assert_eq(sem_init(&done, 0, 0), 0);
	loop_wake(waker);
	while (sem_wait(&done))
		;
	sem_destroy(&done);
}

void relay_reload(const char *yaml)
{
	next = config_of(yaml);
	wake_and_wait();
}

void relay_do(void (*task)(void))
{
	next_task = task;
	wake_and_wait();
}

uint16_t relay_port(void)
{
	return http_bound(http).port;
}

uint16_t relay_admin_port(void)
{
	return http_bound_admin(http).port;
}

int relay_connect(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 15 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	cr_assert_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

/* The other side may have closed already; the answer tells. */
void relay_send(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		bytes += sent;
		n -= (size_t)sent;
	}
}

/* Whether head and body are there. */
static int is_whole(const char *answer, size_t n, int is_head)
{
	const char *end = strstr(answer, "\r\n\r\n");
	const char *length = relay_field(answer, "Content-Length");

	if (!end)
		return 0;
	if (is_head || !length || relay_status(answer) == 204)
		return 1;
	return n >= (size_t)(end + 4 - answer) + strtoul(length, NULL, 10);
}

const char *relay_read(int fd, char answer[RELAY_ANSWER_BYTES], int is_head)
{
	size_t n = 0;
	ssize_t got = 1;

	answer[0] = '\0';
	while (n + 1 < RELAY_ANSWER_BYTES && !is_whole(answer, n, is_head)) {
		got = recv(fd, answer + n, RELAY_ANSWER_BYTES - 1 - n, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
		answer[n] = '\0';
	}
	return answer;
}

const char *relay_ask_port(uint16_t port, const char *request)
{
	static char answer[RELAY_ANSWER_BYTES];
	int fd = relay_connect(port);

	relay_send(fd, request, strlen(request));
	relay_read(fd, answer, strncmp(request, "HEAD", 4) == 0);
	close(fd);
	return answer;
}

const char *relay_ask(const char *request)
{
	return relay_ask_port(relay_port(), request);
}

int relay_status(const char *answer)
{
	return strncmp(answer, "HTTP/1.", 7) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

const char *relay_field(const char *answer, const char *name)
{
	static char value[2048];
	size_t len = strlen(name);

	for (const char *line = strstr(answer, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (*line == '\r')
			return NULL;
		if (strncasecmp(line, name, len) != 0 || line[len] != ':')
			continue;
		line += len + 1;
		line += strspn(line, " ");
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(line, "\r"), line);
		return value;
	}
	return NULL;
}
