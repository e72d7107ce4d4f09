/* server/doctor_net.c - ports, addresses, socket buffers, what the kernel does with datagrams. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/selftest.h"
#include "net/udp.h"
#include "server/candidates.h"
#include "server/doctor.h"
#include "server/listen.h"

enum { HOLDER_BYTES = 96, PATH_BYTES = 300 };

/* --- who has it -------------------------------------------------------------------------- */

/* The inode of a socket bound to this port, in one of /proc/net's tables; 0: none. */
static unsigned long inode_of(const char *table, uint16_t port)
{
	char path[PATH_BYTES], line[512];
	unsigned long inode = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/net/%s", table);
	f = fopen(path, "re");
	while (f && !inode && fgets(line, sizeof(line), f)) {
		unsigned local = 0, state = 0;
		unsigned long found = 0;

		/* NOLINTNEXTLINE(cert-err34-c): what cannot be read is no match */
		if (sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %lu",
			   &local, &state, &found) == 3 &&
		    local == port && (strncmp(table, "tcp", 3) != 0 || state == 0x0a))
			inode = found;
	}
	if (f)
		fclose(f);
	return inode;
}

static bool process_has(const char *pid, const char *socket)
{
	char path[PATH_BYTES], link[64];
	struct dirent *entry;
	bool has = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && !has && (entry = readdir(dir)) != NULL) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		has = strcmp(link, socket) == 0;
	}
	if (dir)
		closedir(dir);
	return has;
}

/* " by sluice (pid 7)"; "" when this user may not know. */
static const char *holder_of_inode(unsigned long inode, char out[HOLDER_BYTES])
{
	char socket[64], path[PATH_BYTES], name[32] = "";
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	out[0] = '\0';
	snprintf(socket, sizeof(socket), "socket:[%lu]", inode);
	while (proc && !out[0] && (entry = readdir(proc)) != NULL) {
		FILE *f;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !process_has(entry->d_name, socket))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = '\0';
		if (f)
			fclose(f);
		snprintf(out, HOLDER_BYTES, " by %s (pid %.12s)", name, entry->d_name);
	}
	if (proc)
		closedir(proc);
	return out;
}

static const char *holder_of(const char *protocol, uint16_t port, char out[HOLDER_BYTES])
{
	char v6[8];
	unsigned long inode = inode_of(protocol, port);

	snprintf(v6, sizeof(v6), "%s6", protocol);
	if (!inode)
		inode = inode_of(v6, port);
	out[0] = '\0';
	return inode ? holder_of_inode(inode, out) : out;
}

/* --- ports ------------------------------------------------------------------------------- */

static int try_tcp(const struct net_addr *addr)
{
	struct sockaddr_storage at;
	int family = net_addr_is_v4(addr) ? AF_INET : AF_INET6, on = 1, err = 0;
	socklen_t len = net_addr_to_sockaddr(addr, family, &at);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&at, len) || listen(fd, 1))
		err = -errno;
	close(fd);
	return err;
}

static void examine_http(struct doctor *d, const char *name, const struct config_address *a)
{
	struct net_addr addr = { .port = a->port };
	char holder[HOLDER_BYTES];
	int err;

	memcpy(addr.ip, a->ip, sizeof(addr.ip));
	err = try_tcp(&addr);
	if (!err)
		doctor_say(d, name, DOCTOR_OK, "", "TCP %s is free", a->text);
	else if (err == -EADDRINUSE)
		doctor_say(d, name, DOCTOR_FAIL, "stop that, or choose another port with --http",
			   "TCP %s is in use%s", a->text, holder_of("tcp", a->port, holder));
	else
		doctor_say(d, name, DOCTOR_FAIL,
			   err == -EACCES ? "choose a port from 1024 on, or grant "
					    "CAP_NET_BIND_SERVICE"
					  : "choose an address of this machine",
			   "TCP %s cannot be bound: %s", a->text, strerror(-err));
}

static const char *list_of(const struct listen_set *set, char *out, size_t bytes)
{
	char text[NET_ADDR_TEXT_BYTES];
	size_t used = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < set->count && used < bytes; i++)
		used += (size_t)snprintf(out + used, bytes - used, "%s%s", i ? ", " : "",
					 net_addr_format(&set->items[i], text));
	return out;
}

/* @return false: nothing can be bound */
static bool examine_udp(struct doctor *d, const struct config *c, struct listen_set *udp)
{
	char error[LISTEN_ERROR_BYTES], list[256], holder[HOLDER_BYTES];
	int err = listen_resolve(udp, c, error);

	if (!err)
		doctor_say(d, "udp_port", DOCTOR_OK, "", "UDP %s free%s",
			   list_of(udp, list, sizeof(list)),
			   udp->is_v6_missing ? "; this system has no IPv6" : "");
	else
		doctor_say(d, "udp_port", DOCTOR_FAIL,
			   err == -EADDRINUSE ? "stop that, or choose another port with --udp"
					      : "choose another address or port with --udp",
			   "%s%s", error,
			   err == -EADDRINUSE
			       ? holder_of("udp", c->udp.listen.items[0].port, holder)
			       : "");
	return err == 0;
}

static void examine_tcp(struct doctor *d, const struct config *c, const struct listen_set *udp,
			struct listen_set *tcp)
{
	char error[LISTEN_ERROR_BYTES], list[256], holder[HOLDER_BYTES];

	*tcp = (struct listen_set){ .count = 0 };
	if (!c->tcp.enabled)
		doctor_say(d, "tcp_port", DOCTOR_WARN, "tcp.enabled: true",
			   "off: clients whose network lets no UDP through cannot connect");
	else if (listen_resolve_tcp(tcp, c, udp, error))
		doctor_say(d, "tcp_port", DOCTOR_FAIL, "choose another port with --tcp", "%s",
			   error);
	else if (tcp->is_taken)
		doctor_say(d, "tcp_port", DOCTOR_WARN, "choose another port with --tcp",
			   "TCP port %u is in use%s: no media over TCP", udp->items[0].port,
			   holder_of("tcp", udp->items[0].port, holder));
	else
		doctor_say(d, "tcp_port", DOCTOR_OK, "", "TCP %s free",
			   list_of(tcp, list, sizeof(list)));
}

/* --- addresses --------------------------------------------------------------------------- */

static bool is_container(void)
{
	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
	       getenv("KUBERNETES_SERVICE_HOST");
}

static void examine_addresses(struct doctor *d, const struct config *c,
			      const struct listen_set *udp, const struct listen_set *tcp)
{
	struct candidates all;
	char text[320];
	int err = candidates_collect(&all, c, udp->items, udp->count);

	if (!err)
		err = candidates_add_tcp(&all, c, tcp->items, tcp->count);
	if (err)
		doctor_say(d, "addresses", DOCTOR_FAIL, "", "cannot be listed: %s", strerror(-err));
	else if (all.count == 0)
		doctor_say(d, "addresses", DOCTOR_FAIL, "name one with --advertise IP",
			   "this machine has none to tell clients");
	else if (all.is_private_only)
		doctor_say(d, "addresses", DOCTOR_WARN,
			   is_container()
			       ? "this is a container: --advertise the host's address and port"
			       : "behind NAT, name the public address with --advertise IP",
			   "clients are told %s: private, nobody on the Internet reaches them",
			   candidates_write(&all, text, sizeof(text)));
	else
		doctor_say(d, "addresses", DOCTOR_OK, "", "clients are told %s",
			   candidates_write(&all, text, sizeof(text)));
}

/* --- sockets ----------------------------------------------------------------------------- */

static void examine_buffer(struct doctor *d, const char *name, const char *sysctl, uint32_t got,
			   uint32_t asked)
{
	char advice[96];

	snprintf(advice, sizeof(advice), "sysctl -w net.core.%s=%u", sysctl, asked);
	if (got >= asked)
		doctor_say(d, name, DOCTOR_OK, "", "%u bytes", got);
	else
		doctor_say(d, name, DOCTOR_WARN, advice,
			   "%u bytes of the %u asked for: bursts are lost", got, asked);
}

static void examine_buffers(struct doctor *d, const struct config *c, const struct net_addr *bind)
{
	struct udp_options options = { .bind = *bind,
				       .rcvbuf_bytes = c->udp.receive_buffer_bytes,
				       .sndbuf_bytes = c->udp.send_buffer_bytes };
	struct udp_socket *socket;
	struct udp_stats stats;

	options.bind.port = 0;
	if (udp_open(&socket, &options))
		return; /* the port's own line says why */
	udp_stats(socket, &stats);
	udp_close(socket, NULL);
	examine_buffer(d, "receive_buffer", "rmem_max", stats.rcvbuf_bytes,
		       c->udp.receive_buffer_bytes);
	examine_buffer(d, "send_buffer", "wmem_max", stats.sndbuf_bytes, c->udp.send_buffer_bytes);
}

static void examine_kernel(struct doctor *d, const struct config *c)
{
	static const struct {
		const char *name, *good, *bad, *advice;
		int (*test)(void);
		enum doctor_level level;
	} tests[] = {
		{ "gso", "a segmented message arrived as it should (UDP_SEGMENT)",
		  "segmented messages (UDP_SEGMENT) do not work: sending costs three times as much",
		  "run Linux 5.0 or newer, and a sandbox that lets it through", selftest_gso,
		  DOCTOR_WARN },
		{ "gro", "messages can be received in one piece (UDP_GRO; sluice-load's)",
		  "no UDP_GRO: sluice-load measures with more cost of its own",
		  "run Linux 5.0 or newer", selftest_gro, DOCTOR_WARN },
		{ "batches", "sendmmsg and recvmmsg carry several datagrams",
		  "sendmmsg or recvmmsg do not work", "a sandbox forbids them: allow them",
		  selftest_batches, DOCTOR_FAIL },
		{ "reuseport", "flows are dealt among sockets of one port, and stay",
		  "sockets do not share a port as workers need it",
		  "--workers 1, or a kernel without a program on that port", selftest_reuseport,
		  DOCTOR_FAIL },
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		int err = tests[i].test();

		if (err)
			doctor_say(d, tests[i].name, tests[i].level, tests[i].advice, "%s (%s)",
				   tests[i].bad, strerror(-err));
		else if (tests[i].test == selftest_gso && !c->udp.gso)
			doctor_say(d, tests[i].name, DOCTOR_WARN, "udp.gso: true",
				   "it works here, but is switched off");
		else
			doctor_say(d, tests[i].name, DOCTOR_OK, "", "%s", tests[i].good);
	}
}

void doctor_examine_net(struct doctor *d, const struct config *c)
{
	struct listen_set udp, tcp;

	examine_http(d, "http_port", &c->http.listen);
	if (c->http.admin.text[0])
		examine_http(d, "admin_port", &c->http.admin);
	if (examine_udp(d, c, &udp)) {
		examine_tcp(d, c, &udp, &tcp);
		examine_addresses(d, c, &udp, &tcp);
		examine_buffers(d, c, &udp.items[0]);
	}
	examine_kernel(d, c);
}
