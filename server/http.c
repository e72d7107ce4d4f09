#include "server/http.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/random.h"
#include "server/http_events.h"
#include "server/http_internal.h"
#include "server/listen.h"
#include "server/log.h"

enum {
	HEAD_TIMEOUT_US = 5 * 1000000,
	BODY_TIMEOUT_US = 10 * 1000000,
	SWEEP_US = 1000000,
	CONNECTION_MEMORY_BYTES = 32 * 1024, /* read buffer, header fields, answer's head */
	BACKLOG = 1024,
	FDS_FOR_OTHERS = 1024,
	ROOM_CONNECTIONS = 16, /* idle ones are closed when fewer than this are free */
	RUNS_A_TURN = 16,
	PEM_MAX_BYTES = 256 * 1024,
};

/* TLS 1.2 and 1.3, forward secrecy and AEAD only. */
static const char tls_priorities[] =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:"
    "+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE:"
    "%SAFE_RENEGOTIATION";

/* ---- connections ------------------------------------------------------------------------- */

static void list_remove(struct http *h, struct http_connection *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		h->oldest = c->next;
	if (c->next)
		c->next->prev = c->prev;
	else
		h->newest = c->prev;
	c->prev = c->next = NULL;
}

static void list_append(struct http *h, struct http_connection *c)
{
	c->prev = h->newest;
	c->next = NULL;
	if (h->newest)
		h->newest->next = c;
	else
		h->oldest = c;
	h->newest = c;
}

void http_connection_enter(struct http *h, struct http_connection *c, enum http_phase phase)
{
	list_remove(h, c);
	c->phase = phase;
	c->since_us = clock_now_us();
	list_append(h, c);
}

/* libmicrohttpd reads the end of the stream and lets go; there is no other way in from here. */
static void connection_shut(struct http_connection *c)
{
	c->is_closing = true;
	shutdown(c->fd, SHUT_RDWR);
}

static void make_room(struct http *h)
{
	if (h->ctx.counters.connections_open + ROOM_CONNECTIONS <= h->connections_max)
		return;
	for (struct http_connection *c = h->oldest; c; c = c->next) {
		if (c->phase != HTTP_PHASE_IDLE || c->is_closing)
			continue;
		h->ctx.counters.closed_idle++;
		connection_shut(c);
		return;
	}
}

static void connection_start(struct http *h, struct MHD_Connection *con, void **socket_context)
{
	const union MHD_ConnectionInfo *fd =
	    MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *peer =
	    MHD_get_connection_info(con, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct http_connection *c = calloc(1, sizeof(*c));
	struct net_addr addr = { .port = 0 };

	*socket_context = c;
	if (!c) {
		shutdown(fd->connect_fd, SHUT_RDWR);
		return;
	}
	if (net_addr_from_sockaddr(&addr, peer->client_addr) == 0)
		memcpy(c->ip, addr.ip, sizeof(c->ip));
	c->fd = fd->connect_fd;
	c->since_us = clock_now_us();
	list_append(h, c);
	h->ctx.counters.connections_open++;
	/* A proxy lends its address to many. */
	c->is_counted = !config_networks_have(&h->ctx.config->http.trusted_proxies, c->ip);
	if (c->is_counted && !limits_connection_open(h->ctx.limits, c->ip, c->since_us)) {
		c->is_counted = false;
		h->ctx.counters.refused_connections_ip++;
		connection_shut(c);
	}
	make_room(h);
	if (h->oldest == c)
		loop_timer_arm(h->sweep, c->since_us + SWEEP_US);
}

static void connection_end(struct http *h, struct http_connection *c)
{
	if (!c)
		return;
	if (c->is_counted)
		limits_connection_close(h->ctx.limits, c->ip);
	h->ctx.counters.connections_open--;
	list_remove(h, c);
	free(c);
}

static void on_connection(void *cls, struct MHD_Connection *con, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_listener *l = cls;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		connection_start(l->http, con, socket_context);
		return;
	}
	connection_end(l->http, *socket_context);
	l->has_ended_one = true;
}

/* Called when a request line has been read: the next request of the connection begins. */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *con)
{
	struct http_listener *l = cls;
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(con, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_connection *c = info ? info->socket_context : NULL;

	if (!c)
		return NULL;
	c->target_end = uri + strlen(uri);
	if (c->phase == HTTP_PHASE_IDLE)
		http_connection_enter(l->http, c, HTTP_PHASE_HEAD);
	return NULL;
}

/* Escapes stay escapes: no name the routes know needs one, and "%00" would cut a name short. */
static size_t keep_escapes(void *cls, struct MHD_Connection *con, char *text)
{
	(void)cls;
	(void)con;
	return strlen(text);
}

static uint64_t phase_timeout_us(const struct http *h, enum http_phase phase)
{
	switch (phase) {
	case HTTP_PHASE_HEAD:
		return HEAD_TIMEOUT_US;
	case HTTP_PHASE_BODY:
		return BODY_TIMEOUT_US;
	case HTTP_PHASE_EVENTS:
		return HTTP_EVENTS_STALL_US;
	default:
		return (uint64_t)h->ctx.config->http.idle_timeout_ms * 1000;
	}
}

/* One byte a second keeps libmicrohttpd's own timeout away, so each phase has an end of its own. */
static void on_sweep(void *arg)
{
	struct http *h = arg;
	uint64_t now_us = clock_now_us();

	for (struct http_connection *c = h->oldest; c; c = c->next) {
		if (c->is_closing || now_us - c->since_us < phase_timeout_us(h, c->phase))
			continue;
		if (c->phase == HTTP_PHASE_IDLE)
			h->ctx.counters.closed_idle++;
		else
			h->ctx.counters.closed_slow++;
		connection_shut(c);
	}
	http_events_tick(h, now_us);
	if (h->oldest)
		loop_timer_arm(h->sweep, now_us + SWEEP_US);
}

/* ---- libmicrohttpd in the loop ----------------------------------------------------------- */

/* At its limit, or out of descriptors, libmicrohttpd stops listening. It begins again in the run
 * after a connection has ended, which nobody else may ask for when that was the last one. */
static void listener_run(struct http_listener *l)
{
	MHD_UNSIGNED_LONG_LONG wait_ms = 0;

	for (int run = 0; run < RUNS_A_TURN && wait_ms == 0; run++) {
		l->has_ended_one = false;
		l->has_resumed = false;
		MHD_run(l->daemon);
		if (l->has_ended_one || l->has_resumed)
			continue;
		if (MHD_get_timeout(l->daemon, &wait_ms) != MHD_YES) {
			loop_timer_arm(l->timer, UINT64_MAX);
			return;
		}
	}
	loop_timer_arm(l->timer, clock_now_us() + wait_ms * 1000);
}

void http_listener_wake(struct http_listener *l)
{
	l->has_resumed = true;
	loop_timer_arm(l->timer, clock_now_us());
}

static void on_ready(void *arg, unsigned events)
{
	(void)events;
	listener_run(arg);
}

static void on_due(void *arg)
{
	listener_run(arg);
}

static int socket_bind(int fd, const struct config_address *a)
{
	struct net_addr addr = { .port = a->port };
	struct sockaddr_storage ss;
	socklen_t len;
	int on = 1;
	int v6_only = !a->is_both;

	memcpy(addr.ip, a->ip, sizeof(addr.ip));
	len = net_addr_to_sockaddr(&addr, a->is_v4 ? AF_INET : AF_INET6, &ss);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    (!a->is_v4 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only))) ||
	    bind(fd, (struct sockaddr *)&ss, len) || listen(fd, BACKLOG))
		return -errno;
	return 0;
}

/* @return the descriptor or a negative errno */
static int socket_open(const struct config_address *a, struct net_addr *bound)
{
	struct config_address v4_any = { .ip = { [10] = 0xff, [11] = 0xff },
					 .port = a->port,
					 .is_v4 = true };
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(a->is_v4 ? AF_INET : AF_INET6, type, 0);
	int err;

	if (fd < 0 && a->is_both && errno == EAFNOSUPPORT) {
		a = &v4_any; /* a host without IPv6 */
		fd = socket(AF_INET, type, 0);
	}
	if (fd < 0)
		return -errno;
	err = socket_bind(fd, a);
	if (!err && getsockname(fd, (struct sockaddr *)&ss, &len))
		err = -errno;
	if (!err)
		err = net_addr_from_sockaddr(bound, (struct sockaddr *)&ss);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static const char not_a_pair[] = "http.cert and http.key: not a certificate with its key";

/* @return NULL and *err on failure; the caller clears and frees it */
static char *pem_read(const char *path, int *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : calloc(1, PEM_MAX_BYTES + 1);
	ssize_t n = text ? read(fd, text, PEM_MAX_BYTES) : -1;

	*err = n > 0 ? 0 : n == 0 ? -EINVAL : -errno;
	if (fd >= 0)
		close(fd);
	if (*err) {
		free(text);
		return NULL;
	}
	return text;
}

static void pem_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static int daemon_start(struct http_listener *l, int fd, const char *cert, const char *key)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (cert ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)tls_priorities },
		{ MHD_OPTION_END, 0, NULL },
	};
	unsigned idle_s = (l->http->ctx.config->http.idle_timeout_ms + 999) / 1000;

	l->daemon = MHD_start_daemon(
	    flags, 0, NULL, NULL, http_exchange_step, l, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_NOTIFY_COMPLETED, http_exchange_end, l, MHD_OPTION_NOTIFY_CONNECTION,
	    on_connection, l, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, l,
	    MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)l->http->connections_max,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
	    MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, cert ? tls : tls + 3,
	    MHD_OPTION_END);
	return l->daemon ? 0 : -EINVAL;
}

static int listener_watch(struct http_listener *l)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	int err;

	if (!info || info->epoll_fd < 0)
		return -EINVAL;
	err = loop_timer_open(l->http->loop, &l->timer, on_due, l);
	if (!err)
		err = loop_watch_open(l->http->loop, &l->watch, info->epoll_fd, on_ready, l);
	if (!err)
		loop_watch_set(l->watch, LOOP_READABLE);
	return err;
}

/* @return 0, or a negative errno with one line in `error`; what was read is the caller's to free */
static int pem_read_both(const struct config *c, char **cert, char **key,
			 char error[HTTP_ERROR_BYTES])
{
	int err;

	*key = NULL;
	*cert = pem_read(c->http.cert, &err);
	if (!err)
		*key = pem_read(c->http.key, &err);
	if (err)
		snprintf(error, HTTP_ERROR_BYTES, "%s: cannot read %.160s: %s",
			 *cert ? "http.key" : "http.cert", *cert ? c->http.key : c->http.cert,
			 strerror(-err));
	return err;
}

int http_check(const struct config *c, char error[HTTP_ERROR_BYTES])
{
	struct MHD_Daemon *daemon = NULL;
	char *cert = NULL;
	char *key = NULL;
	int err = 0;

	if (!c->http.cert)
		return 0;
	err = pem_read_both(c, &cert, &key, error);
	if (!err) {
		/* A daemon that hears nothing: it starts only with a certificate and its key. */
		daemon = MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET | MHD_USE_TLS, 0, NULL, NULL,
					  http_exchange_step, NULL, MHD_OPTION_HTTPS_MEM_CERT, cert,
					  MHD_OPTION_HTTPS_MEM_KEY, key, MHD_OPTION_END);
		if (!daemon) {
			snprintf(error, HTTP_ERROR_BYTES, "%s", not_a_pair);
			err = -EINVAL;
		}
	}
	if (daemon)
		MHD_stop_daemon(daemon);
	pem_free(cert);
	pem_free(key);
	return err;
}

static int listener_open(struct http_listener *l, const struct config_address *a, bool is_tls,
			 char error[HTTP_ERROR_BYTES])
{
	const struct config *c = l->http->ctx.config;
	char *cert = NULL;
	char *key = NULL;
	int fd = -1;
	int err = 0;

	if (is_tls)
		err = pem_read_both(c, &cert, &key, error);
	if (err)
		goto out;
	fd = socket_open(a, &l->bound);
	err = fd < 0 ? fd : 0;
	if (err) {
		snprintf(error, HTTP_ERROR_BYTES, "%s: cannot listen on %s: %s",
			 l->is_admin ? "http.admin" : "http.listen", a->text, strerror(-err));
		goto out;
	}
	l->is_tls = is_tls;
	err = daemon_start(l, fd, cert, key);
	if (err) { /* libmicrohttpd has closed the descriptor */
		snprintf(error, HTTP_ERROR_BYTES, "%s",
			 is_tls ? not_a_pair : "the HTTP server cannot start");
		goto out;
	}
	err = listener_watch(l);
	if (err)
		snprintf(error, HTTP_ERROR_BYTES, "the HTTP server cannot start: %s",
			 strerror(-err));
out:
	pem_free(cert);
	pem_free(key);
	return err;
}

/* ---- life ------------------------------------------------------------------------------- */

static uint32_t connections_max(const struct config *c)
{
	struct rlimit fds = { .rlim_cur = 0 };
	rlim_t media = listen_tcp_connections(c);

	if (c->limits.connections)
		return c->limits.connections;
	if (getrlimit(RLIMIT_NOFILE, &fds) || fds.rlim_cur <= FDS_FOR_OTHERS)
		return (uint32_t)fds.rlim_cur / 2;
	fds.rlim_cur -= media < fds.rlim_cur / 2 ? media : fds.rlim_cur / 2;
	if (fds.rlim_cur <= 2 * FDS_FOR_OTHERS)
		return FDS_FOR_OTHERS / 2;
	return fds.rlim_cur > 1000000 ? 1000000 : (uint32_t)fds.rlim_cur - FDS_FOR_OTHERS;
}

static int listeners_open(struct http *h, char error[HTTP_ERROR_BYTES])
{
	const struct config *c = h->ctx.config;
	int err = listener_open(&h->listeners[0], &c->http.listen, c->http.cert, error);

	/* On loopback a scraper should not need the certificate. */
	if (!err && c->http.admin.text[0])
		err = listener_open(&h->listeners[1], &c->http.admin,
				    c->http.cert && !config_address_is_loopback(&c->http.admin),
				    error);
	return err;
}

static void warn(const struct http *h)
{
	const struct config *c = h->ctx.config;

	if (!h->listeners[0].is_tls && !config_address_is_loopback(&c->http.listen) &&
	    c->tokens.publish.count + c->tokens.watch.count + c->tokens.admin.count > 0)
		log_event(
		    CONFIG_LOG_WARN, "plain_http",
		    log_text("hint",
			     "tokens can be read on the way: set http.cert and http.key, or put "
			     "a proxy with HTTPS in front"));
	if (c->is_secret_readable)
		log_event(CONFIG_LOG_WARN, "secrets_readable",
			  log_text("hint",
				   "others on this host may read the configuration file with its "
				   "tokens: chmod 600"));
}

static void on_settled(void *arg, const uint8_t client[16])
{
	struct http *h = arg;

	limits_half_open_release(h->ctx.limits, client);
}

int http_create(struct http **out, struct loop *loop, const struct config *c, struct registry *r,
		char error[HTTP_ERROR_BYTES])
{
	struct http *h = calloc(1, sizeof(*h));
	int err;

	*out = NULL;
	snprintf(error, HTTP_ERROR_BYTES, "out of memory");
	if (!h)
		return -ENOMEM;
	h->loop = loop;
	h->ctx.config = c;
	h->ctx.registry = r;
	h->ctx.started_us = clock_now_us();
	h->connections_max = connections_max(c);
	h->listeners[0].http = h->listeners[1].http = h;
	h->listeners[1].is_admin = true;
	err = auth_create(&h->ctx.auth, c);
	if (!err)
		err = limits_create(&h->ctx.limits, c, random_u64());
	if (!err)
		err = loop_timer_open(loop, &h->sweep, on_sweep, h);
	if (!err)
		err = listeners_open(h, error);
	if (err) {
		http_destroy(h);
		return err;
	}
	registry_on_settled(r, on_settled, h);
	warn(h);
	*out = h;
	return 0;
}

void http_destroy(struct http *h)
{
	if (!h)
		return;
	http_events_end(h);
	for (int i = 0; i < 2; i++) {
		struct http_listener *l = &h->listeners[i];

		if (l->watch)
			loop_watch_close(l->watch);
		if (l->timer)
			loop_timer_close(l->timer);
		if (l->daemon)
			MHD_stop_daemon(l->daemon);
	}
	assert(!h->oldest);
	registry_on_settled(h->ctx.registry, NULL, NULL);
	if (h->sweep)
		loop_timer_close(h->sweep);
	limits_destroy(h->ctx.limits);
	auth_destroy(h->ctx.auth);
	free(h);
}

int http_reload(struct http *h, const struct config *c)
{
	struct auth *auth;
	int err = auth_create(&auth, c);

	if (err)
		return err;
	auth_destroy(h->ctx.auth);
	h->ctx.auth = auth;
	h->ctx.config = c;
	limits_configure(h->ctx.limits, c);
	return 0;
}

struct net_addr http_bound(const struct http *h)
{
	return h->listeners[0].bound;
}

struct net_addr http_bound_admin(const struct http *h)
{
	return h->listeners[1].bound;
}
