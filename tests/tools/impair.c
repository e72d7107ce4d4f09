/* tests/tools/impair.c - a UDP relay that behaves like a bad network between clients and a server.
 *
 * impair --listen ADDR:PORT --to ADDR:PORT [--NAME VALUE]... [--seed N] [--stats-json]
 *
 * Each client address is a link of its own, with its own socket towards the server, so that the
 * server sees as many peers as there are clients. ADDR of --listen is a specific one: answers
 * leave from it. NAME is a setting of impair_model.h for both directions, or with -up (to the
 * server) or -down for one. Prints "ready listen=ADDR:PORT" once it is bound.
 *
 * Lines on stdin, each answered by one line, "ok" or "error: ...":
 *   NAME VALUE              change a setting, for all links that have none of their own
 *   for UFRAG NAME VALUE    change it for the link whose first STUN request named UFRAG (either
 *                           half of its USERNAME), now or when it comes; the rest as the default
 *   rebind [ADDR]           new source port for every link, or a new source address as well:
 *                           another 127.x, or ::1 for a server that listens on both families
 *   for UFRAG rebind [ADDR]
 *   stats                   counters as one JSON line, before the ok; held_ms: how long datagrams
 *                           waited at bottlenecks since the stats before
 * The end of stdin changes nothing. SIGTERM and SIGINT end it, with the counters if asked for.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/tools/impair_model.h"

enum {
	MAX_LINKS = 8192,
	MAX_OWN = 256, /* profiles chosen by ufrag */
	BUCKETS = 4096,
	MAX_ON_THEIR_WAY = 1 << 18,
	READS_PER_WAKE = 256, /* per socket, so that no link starves the others */
	BUFFER_BYTES = 8 << 20,
	LINE_BYTES = 1024,
	HELD_STEP_US = 1000, /* what is held longer than all the steps counts for the last */
	HELD_STEPS = 4000,
};

enum direction { UP, DOWN, DIRECTIONS };

struct profiles {
	struct impair_profile way[DIRECTIONS];
};

struct own_profiles {
	char ufrag[IMPAIR_UFRAG_BYTES];
	struct profiles profiles;
};

struct endpoint {
	struct sockaddr_storage addr;
	socklen_t len;
};

struct link;

struct way {
	struct impair_flow flow;
	struct link *link;
	enum direction direction;
};

struct link {
	struct link *next; /* in its bucket */
	struct endpoint client;
	int fd; /* towards the server */
	struct way way[DIRECTIONS];
	bool is_named;
	char server_ufrag[IMPAIR_UFRAG_BYTES], client_ufrag[IMPAIR_UFRAG_BYTES];
};

struct counters {
	uint64_t received, forwarded, bytes, lost, overflow, duplicated, corrupted, reordered;
	uint64_t dropped;          /* by us: no memory, no link left, or the kernel refused it */
	uint64_t held[HELD_STEPS]; /* of links with a bottleneck; emptied by print_stats() */
};

static struct {
	int epoll, timer, signals, listener;
	struct endpoint server;
	struct profiles profiles;
	struct own_profiles own[MAX_OWN];
	size_t own_count;
	struct link *links[MAX_LINKS];
	size_t link_count;
	struct link *buckets[BUCKETS];
	struct impair_queue *queue;
	struct counters counters[DIRECTIONS];
	uint64_t rebinds, seed;
	bool is_stats_wanted, is_over;
	char line[LINE_BYTES];
	size_t line_bytes;
	bool is_line_too_long;
} relay;

static void die(const char *what)
{
	fprintf(stderr, "impair: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- Addresses ------------------------------------------------------------------------------ */

/* "1.2.3.4:5", "[::1]:5", or without a port. @return 0 or -EINVAL */
static int endpoint_parse(struct endpoint *out, const char *text)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_DGRAM };
	char host[128];
	const char *end, *port = "0";
	struct addrinfo *found;

	if (*text == '[') {
		end = strchr(++text, ']');
		if (!end)
			return -EINVAL;
		if (end[1] == ':')
			port = end + 2;
	} else {
		end = strchr(text, ':');
		if (end && !strchr(end + 1, ':'))
			port = end + 1;
		else
			end = text + strlen(text); /* IPv6 without brackets */
	}
	if ((size_t)(end - text) >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return -EINVAL;
	memcpy(&out->addr, found->ai_addr, found->ai_addrlen);
	out->len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static in_port_t *port_of(struct endpoint *e)
{
	if (e->addr.ss_family == AF_INET)
		return &((struct sockaddr_in *)&e->addr)->sin_port;
	return &((struct sockaddr_in6 *)&e->addr)->sin6_port;
}

static uint32_t bucket_of(const struct endpoint *e)
{
	const uint8_t *bytes = (const uint8_t *)&e->addr;
	uint32_t hash = 2166136261U;

	for (socklen_t i = 0; i < e->len; i++)
		hash = (hash ^ bytes[i]) * 16777619U;
	return hash % BUCKETS;
}

static int socket_open(const struct endpoint *bind_to, const struct endpoint *connect_to)
{
	int size = BUFFER_BYTES;
	int fd = socket(bind_to->addr.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(fd, (const struct sockaddr *)&bind_to->addr, bind_to->len) ||
	    (connect_to &&
	     connect(fd, (const struct sockaddr *)&connect_to->addr, connect_to->len))) {
		int kept = errno;

		close(fd);
		errno = kept;
		return -1;
	}
	return fd;
}

static void watch(int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	if (epoll_ctl(relay.epoll, EPOLL_CTL_ADD, fd, &event) && errno != EPERM)
		die("epoll_ctl"); /* EPERM: a stdin that is a file, which gives no orders */
}

/* --- Links ---------------------------------------------------------------------------------- */

static struct link *link_find(const struct endpoint *client)
{
	struct link *l = relay.buckets[bucket_of(client)];

	while (l && (l->client.len != client->len ||
		     memcmp(&l->client.addr, &client->addr, client->len) != 0))
		l = l->next;
	return l;
}

/* Any port, on the given address or on what the route to the server says. */
static int upstream_open(const struct endpoint *source)
{
	struct endpoint any = { .len = relay.server.len };
	struct endpoint server = relay.server;

	if (!source) {
		any.addr.ss_family = relay.server.addr.ss_family;
		return socket_open(&any, &server);
	}
	if (source->addr.ss_family != server.addr.ss_family) {
		/* The server listens on both families: reach it at the source's own address. */
		server = *source;
		*port_of(&server) = *port_of(&relay.server);
	}
	return socket_open(source, &server);
}

static struct link *link_create(const struct endpoint *client)
{
	struct link *l;
	uint32_t bucket = bucket_of(client);

	if (relay.link_count == MAX_LINKS)
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->fd = upstream_open(NULL);
	if (l->fd < 0) {
		free(l);
		return NULL;
	}
	l->client = *client;
	for (enum direction d = UP; d < DIRECTIONS; d++) {
		l->way[d].link = l;
		l->way[d].direction = d;
		impair_flow_init(&l->way[d].flow, &relay.profiles.way[d],
				 relay.seed + relay.link_count * DIRECTIONS + d);
	}
	watch(l->fd, l);
	l->next = relay.buckets[bucket];
	relay.buckets[bucket] = l;
	relay.links[relay.link_count++] = l;
	return l;
}

static bool link_is_called(const struct link *l, const char *ufrag)
{
	return l->is_named &&
	       (strcmp(l->server_ufrag, ufrag) == 0 || strcmp(l->client_ufrag, ufrag) == 0);
}

static void link_choose_profiles(struct link *l)
{
	const struct profiles *chosen = &relay.profiles;

	for (size_t i = 0; i < relay.own_count; i++)
		if (link_is_called(l, relay.own[i].ufrag))
			chosen = &relay.own[i].profiles;
	for (enum direction d = UP; d < DIRECTIONS; d++)
		l->way[d].flow.profile = chosen->way[d];
}

static int link_rebind(struct link *l, const struct endpoint *source)
{
	int fd = upstream_open(source);

	if (fd < 0)
		return -errno;
	close(l->fd); /* also leaves the epoll set; what the server still sends there is lost */
	l->fd = fd;
	watch(fd, l);
	relay.rebinds++;
	return 0;
}

/* --- Datagrams ------------------------------------------------------------------------------ */

static void deliver(const struct way *way, const uint8_t *bytes, size_t len)
{
	struct counters *c = &relay.counters[way->direction];
	const struct link *l = way->link;
	ssize_t sent;

	if (way->direction == UP)
		sent = send(l->fd, bytes, len, 0);
	else
		sent = sendto(relay.listener, bytes, len, 0,
			      (const struct sockaddr *)&l->client.addr, l->client.len);
	if (sent < 0) {
		c->dropped++; /* nobody listens there, or the buffer is full */
		return;
	}
	c->forwarded++;
	c->bytes += len;
}

static void enqueue(struct way *way, uint64_t due_us, const uint8_t *bytes, size_t len)
{
	if (impair_queue_push(relay.queue, due_us, way, bytes, len))
		relay.counters[way->direction].dropped++;
}

static void note_held(struct counters *c, uint64_t us)
{
	uint64_t step = us / HELD_STEP_US;

	c->held[step < HELD_STEPS ? step : HELD_STEPS - 1]++;
}

static void on_datagram(struct way *way, uint64_t at_us, uint8_t *bytes, size_t len)
{
	struct counters *c = &relay.counters[way->direction];
	struct impair_fate fate = impair_flow_on_datagram(&way->flow, at_us, len);

	c->received++;
	c->lost += fate.verdict == IMPAIR_LOST;
	c->overflow += fate.verdict == IMPAIR_OVERFLOW;
	if (fate.verdict != IMPAIR_PASSED)
		return;
	c->reordered += fate.is_reordered;
	if (way->flow.profile.rate_kbps > 0)
		note_held(c, fate.due_us - at_us);
	if (fate.flip_bit != UINT32_MAX) {
		bytes[fate.flip_bit / 8] ^= (uint8_t)(1 << fate.flip_bit % 8);
		c->corrupted++;
	}
	enqueue(way, fate.due_us, bytes, len);
	if (fate.is_copied) {
		enqueue(way, fate.due_us, bytes, len);
		c->duplicated++;
	}
}

static void from_client(const struct endpoint *client, uint8_t *bytes, size_t len)
{
	struct link *l = link_find(client);

	if (!l)
		l = link_create(client);
	if (!l) {
		relay.counters[UP].dropped++;
		return;
	}
	if (!l->is_named && impair_stun_ufrags(bytes, len, l->server_ufrag, l->client_ufrag)) {
		l->is_named = true;
		link_choose_profiles(l);
	}
	on_datagram(&l->way[UP], now_us(), bytes, len);
}

static void read_listener(void)
{
	static uint8_t bytes[IMPAIR_MAX_BYTES];

	for (int i = 0; i < READS_PER_WAKE; i++) {
		struct endpoint from = { .len = sizeof(from.addr) };
		ssize_t len = recvfrom(relay.listener, bytes, sizeof(bytes), 0,
				       (struct sockaddr *)&from.addr, &from.len);

		if (len < 0 && errno == EAGAIN)
			return;
		if (len >= 0) /* else an ICMP error of an earlier answer: the next may be fine */
			from_client(&from, bytes, (size_t)len);
	}
}

static void read_link(struct link *l)
{
	static uint8_t bytes[IMPAIR_MAX_BYTES];

	for (int i = 0; i < READS_PER_WAKE; i++) {
		ssize_t len = recv(l->fd, bytes, sizeof(bytes), 0);

		if (len < 0 && errno == EAGAIN)
			return;
		if (len >= 0)
			on_datagram(&l->way[DOWN], now_us(), bytes, (size_t)len);
	}
}

static void send_due(void)
{
	struct impair_item item;
	struct itimerspec when = { 0 };
	uint64_t deadline_us;

	while (impair_queue_pop(relay.queue, now_us(), &item)) {
		deliver(item.owner, item.bytes, item.len);
		free(item.bytes);
	}
	deadline_us = impair_queue_deadline_us(relay.queue);
	if (deadline_us != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(deadline_us / 1000000);
		when.it_value.tv_nsec = (long)(deadline_us % 1000000 * 1000);
	}
	timerfd_settime(relay.timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* --- Orders --------------------------------------------------------------------------------- */

/* The time below which so many per cent were held, in steps. */
static unsigned held_percentile(const struct counters *c, unsigned pct)
{
	uint64_t total = 0, below = 0;
	unsigned step = 0;

	for (unsigned i = 0; i < HELD_STEPS; i++)
		total += c->held[i];
	for (; step < HELD_STEPS - 1 && below * 100 < total * pct; step++)
		below += c->held[step];
	return step;
}

static void print_stats(void)
{
	static const char *const names[] = { "up", "down" };

	printf("{\"links\":%zu,\"rebinds\":%ju", relay.link_count, (uintmax_t)relay.rebinds);
	for (enum direction d = UP; d < DIRECTIONS; d++) {
		struct counters *c = &relay.counters[d];

		printf(",\"%s\":{\"received\":%ju,\"forwarded\":%ju,\"bytes\":%ju,\"lost\":%ju,"
		       "\"overflow\":%ju,\"duplicated\":%ju,\"corrupted\":%ju,\"reordered\":%ju,"
		       "\"dropped\":%ju,\"held_ms\":{\"p50\":%u,\"p95\":%u}}",
		       names[d], (uintmax_t)c->received, (uintmax_t)c->forwarded,
		       (uintmax_t)c->bytes, (uintmax_t)c->lost, (uintmax_t)c->overflow,
		       (uintmax_t)c->duplicated, (uintmax_t)c->corrupted, (uintmax_t)c->reordered,
		       (uintmax_t)c->dropped, held_percentile(c, 50), held_percentile(c, 95));
		memset(c->held, 0, sizeof(c->held));
	}
	printf("}\n");
	fflush(stdout);
}

/* NAME, NAME-up or NAME-down. @return 0, -ENOENT or -EINVAL */
static int profiles_set(struct profiles *p, const char *name, const char *value)
{
	static const char *const suffixes[] = { "-up", "-down" };
	char stem[32];
	size_t len = strlen(name);
	int err;

	for (enum direction d = UP; d < DIRECTIONS; d++) {
		size_t tail = strlen(suffixes[d]);

		if (len <= tail || len - tail >= sizeof(stem) ||
		    strcmp(name + len - tail, suffixes[d]) != 0)
			continue;
		memcpy(stem, name, len - tail);
		stem[len - tail] = '\0';
		return impair_profile_set(&p->way[d], stem, value);
	}
	err = impair_profile_set(&p->way[UP], name, value);
	return err ? err : impair_profile_set(&p->way[DOWN], name, value);
}

/* The profiles of a ufrag, begun as a copy of the default. NULL: too many, or too long. */
static struct profiles *own_of(const char *ufrag)
{
	struct own_profiles *own;

	for (size_t i = 0; i < relay.own_count; i++)
		if (strcmp(relay.own[i].ufrag, ufrag) == 0)
			return &relay.own[i].profiles;
	if (relay.own_count == MAX_OWN || strlen(ufrag) >= IMPAIR_UFRAG_BYTES)
		return NULL;
	own = &relay.own[relay.own_count++];
	memcpy(own->ufrag, ufrag, strlen(ufrag) + 1);
	own->profiles = relay.profiles;
	return &own->profiles;
}

static int order_set(const char *ufrag, const char *name, const char *value)
{
	struct profiles probe = relay.profiles; /* a wrong line leaves no profile behind */
	int err = profiles_set(&probe, name, value);
	struct profiles *p;

	if (err)
		return err;
	p = ufrag ? own_of(ufrag) : &relay.profiles;
	if (!p)
		return -ENOSPC;
	err = profiles_set(p, name, value);
	for (size_t i = 0; i < relay.link_count; i++)
		link_choose_profiles(relay.links[i]);
	return err;
}

static int order_rebind(const char *ufrag, const char *address)
{
	struct endpoint source;
	size_t count = 0;

	if (address && endpoint_parse(&source, address))
		return -EINVAL;
	for (size_t i = 0; i < relay.link_count; i++) {
		int err;

		if (ufrag && !link_is_called(relay.links[i], ufrag))
			continue;
		err = link_rebind(relay.links[i], address ? &source : NULL);
		if (err)
			return err;
		count++;
	}
	return ufrag && count == 0 ? -ENOENT : 0;
}

static void on_order(char *line)
{
	enum { MAX_WORDS = 5 };
	char *words[MAX_WORDS] = { NULL };
	char **word = words;
	const char *ufrag = NULL;
	char *rest = line;
	int count = 0, err = -EINVAL;

	while (count < MAX_WORDS && (words[count] = strtok_r(rest, " \t\r", &rest)))
		count++;
	if (count == 0)
		return;
	if (count > 2 && strcmp(word[0], "for") == 0) {
		ufrag = word[1];
		word += 2;
		count -= 2;
	}
	if (strcmp(word[0], "rebind") == 0 && count <= 2)
		err = order_rebind(ufrag, count == 2 ? word[1] : NULL);
	else if (strcmp(word[0], "stats") == 0 && count == 1 && !ufrag)
		print_stats(), err = 0;
	else if (count == 2)
		err = order_set(ufrag, word[0], word[1]);
	if (err)
		printf("error: %s\n", err == -ENOENT ? "no such setting or link" : strerror(-err));
	else
		printf("ok\n");
	fflush(stdout);
}

static void read_orders(void)
{
	ssize_t got = read(STDIN_FILENO, relay.line + relay.line_bytes,
			   sizeof(relay.line) - 1 - relay.line_bytes);
	char *end;

	if (got <= 0) {
		epoll_ctl(relay.epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
		return;
	}
	relay.line_bytes += (size_t)got;
	relay.line[relay.line_bytes] = '\0';
	while ((end = strchr(relay.line, '\n'))) {
		*end = '\0';
		if (!relay.is_line_too_long)
			on_order(relay.line);
		relay.is_line_too_long = false;
		relay.line_bytes -= (size_t)(end + 1 - relay.line);
		memmove(relay.line, end + 1, relay.line_bytes + 1);
	}
	if (relay.line_bytes == sizeof(relay.line) - 1) {
		relay.line_bytes = 0;
		if (!relay.is_line_too_long)
			printf("error: line too long\n");
		fflush(stdout);
		relay.is_line_too_long = true; /* and so is the rest of it */
	}
}

/* --- Start ---------------------------------------------------------------------------------- */

static void usage(const char *what)
{
	fprintf(stderr,
		"impair: %s\n"
		"usage: impair --listen ADDR:PORT --to ADDR:PORT [--loss PCT] [--burst N]\n"
		"  [--delay-ms N] [--jitter-ms N] [--rate-kbps N] [--queue-kb N] [--reorder PCT]\n"
		"  [--dup PCT] [--corrupt PCT] (each also with -up or -down) [--seed N]\n"
		"  [--stats-json]\n",
		what);
	exit(2);
}

static void read_arguments(int argc, char **argv, struct endpoint *listen_on)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strncmp(name, "--", 2) != 0)
			usage(name);
		name += 2;
		if (strcmp(name, "stats-json") == 0) {
			relay.is_stats_wanted = true;
			continue;
		}
		if (!value)
			usage("a value is missing");
		i++;
		if (strcmp(name, "listen") == 0 && endpoint_parse(listen_on, value) == 0)
			continue;
		if (strcmp(name, "to") == 0 && endpoint_parse(&relay.server, value) == 0)
			continue;
		if (strcmp(name, "seed") == 0)
			relay.seed = strtoull(value, NULL, 0);
		else if (profiles_set(&relay.profiles, name, value))
			usage(argv[i - 1]);
	}
	if (!listen_on->len || !relay.server.len)
		usage("--listen and --to are needed");
}

static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void start(struct endpoint *listen_on)
{
	struct endpoint bound = { .len = sizeof(bound.addr) };
	char host[64], port[8];
	sigset_t signals;

	raise_fd_limit();
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	relay.signals = signalfd(-1, &signals, SFD_CLOEXEC);
	relay.epoll = epoll_create1(EPOLL_CLOEXEC);
	relay.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (relay.signals < 0 || relay.epoll < 0 || relay.timer < 0)
		die("start");
	if (impair_queue_create(&relay.queue, MAX_ON_THEIR_WAY))
		die("memory");
	relay.listener = socket_open(listen_on, NULL);
	if (relay.listener < 0)
		die("--listen");
	watch(relay.signals, &relay.signals);
	watch(relay.timer, &relay.timer);
	watch(relay.listener, &relay.listener);
	watch(STDIN_FILENO, relay.line);
	if (getsockname(relay.listener, (struct sockaddr *)&bound.addr, &bound.len) ||
	    getnameinfo((struct sockaddr *)&bound.addr, bound.len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		die("getsockname");
	printf(bound.addr.ss_family == AF_INET6 ? "ready listen=[%s]:%s\n" : "ready listen=%s:%s\n",
	       host, port);
	fflush(stdout);
}

static void on_event(void *what)
{
	uint64_t expirations;

	if (what == &relay.signals)
		relay.is_over = true;
	else if (what == &relay.timer)
		(void)!read(relay.timer, &expirations, sizeof(expirations));
	else if (what == &relay.listener)
		read_listener();
	else if (what == relay.line)
		read_orders();
	else
		read_link(what);
}

int main(int argc, char **argv)
{
	struct epoll_event events[64];
	struct endpoint listen_on = { 0 };

	relay.seed = 1;
	read_arguments(argc, argv, &listen_on);
	start(&listen_on);
	while (!relay.is_over) {
		int count = epoll_wait(relay.epoll, events, 64, -1);

		for (int i = 0; i < count; i++)
			on_event(events[i].data.ptr);
		send_due();
	}
	if (relay.is_stats_wanted)
		print_stats();
	for (size_t i = 0; i < relay.link_count; i++) {
		close(relay.links[i]->fd);
		free(relay.links[i]);
	}
	impair_queue_destroy(relay.queue);
	return 0;
}
