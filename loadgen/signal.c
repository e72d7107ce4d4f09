#include "loadgen/signal.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

struct request {
	struct signal_client *client;
	struct request *next, *prev;
	CURL *easy;
	struct curl_slist *fields;
	signal_on_result *on_result;
	void *arg;
	char *body;
	size_t body_bytes;
	char location[SIGNAL_URL_BYTES]; /* as received */
	char error[CURL_ERROR_SIZE];
};

struct signal_client {
	struct loop *loop;
	struct loop_timer *timer;
	CURLM *multi;
	struct request *requests;
};

/* A socket of libcurl's, watched. */
struct watched {
	struct signal_client *client;
	struct loop_watch *watch;
	curl_socket_t fd;
};

static void finish_all(struct signal_client *c);

static void on_ready(void *arg, unsigned events)
{
	struct watched *w = arg;
	struct signal_client *c = w->client;
	int running, bits = 0;

	if (events & LOOP_READABLE)
		bits |= CURL_CSELECT_IN;
	if (events & LOOP_WRITABLE)
		bits |= CURL_CSELECT_OUT;
	curl_multi_socket_action(c->multi, w->fd, bits, &running); /* may free w */
	finish_all(c);
}

static void on_due(void *arg)
{
	struct signal_client *c = arg;
	int running;

	curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	finish_all(c);
}

static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct signal_client *c = arg;

	(void)multi;
	loop_timer_arm(c->timer,
		       timeout_ms < 0 ? UINT64_MAX : clock_now_us() + (uint64_t)timeout_ms * 1000);
	return 0;
}

static struct watched *watch_open(struct signal_client *c, curl_socket_t fd)
{
	struct watched *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->client = c;
	w->fd = fd;
	if (loop_watch_open(c->loop, &w->watch, fd, on_ready, w) != 0) {
		free(w);
		return NULL;
	}
	curl_multi_assign(c->multi, fd, w);
	return w;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct signal_client *c = arg;
	struct watched *w = socket_arg;
	unsigned events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w)
			loop_watch_close(w->watch);
		free(w);
		curl_multi_assign(c->multi, fd, NULL);
		return 0;
	}
	if (!w)
		w = watch_open(c, fd);
	if (!w)
		return -1;
	if (what & CURL_POLL_IN)
		events |= LOOP_READABLE;
	if (what & CURL_POLL_OUT)
		events |= LOOP_WRITABLE;
	loop_watch_set(w->watch, events);
	return 0;
}

int signal_create(struct signal_client **out, struct loop *loop)
{
	struct signal_client *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (!c)
		return -ENOMEM;
	c->loop = loop;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		c->multi = curl_multi_init();
	if (!c->multi || loop_timer_open(loop, &c->timer, on_due, c) != 0) {
		signal_destroy(c);
		return -ENOMEM;
	}
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)SIGNAL_CONNECTIONS);
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)SIGNAL_CONNECTIONS);
	*out = c;
	return 0;
}

static void release(struct request *r)
{
	struct signal_client *c = r->client;

	if (r->prev)
		r->prev->next = r->next;
	else
		c->requests = r->next;
	if (r->next)
		r->next->prev = r->prev;
	if (r->easy) {
		curl_multi_remove_handle(c->multi, r->easy);
		curl_easy_cleanup(r->easy);
	}
	curl_slist_free_all(r->fields);
	free(r->body);
	free(r);
}

void signal_destroy(struct signal_client *c)
{
	if (!c)
		return;
	for (struct request *r = c->requests, *next; r; r = next) {
		next = r->next;
		release(r);
	}
	if (c->multi)
		curl_multi_cleanup(c->multi);
	if (c->timer)
		loop_timer_close(c->timer);
	free(c);
	curl_global_cleanup();
}

/* --- the response ---------------------------------------------------------------------- */

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct request *r = arg;
	size_t len = size * count;
	char *grown;

	if (r->body_bytes + len > SIGNAL_ANSWER_BYTES)
		return 0;
	grown = realloc(r->body, r->body_bytes + len + 1);
	if (!grown)
		return 0;
	memcpy(grown + r->body_bytes, bytes, len);
	r->body = grown;
	r->body_bytes += len;
	r->body[r->body_bytes] = '\0';
	return len;
}

static size_t on_field(char *line, size_t size, size_t count, void *arg)
{
	static const char name[] = "location:";
	struct request *r = arg;
	size_t len = size * count, from = sizeof(name) - 1, to = len;

	if (len <= from || strncasecmp(line, name, from) != 0)
		return len;
	while (from < to && (line[from] == ' ' || line[from] == '\t'))
		from++;
	while (to > from && (unsigned char)line[to - 1] <= ' ')
		to--;
	if (to - from < sizeof(r->location)) {
		memcpy(r->location, line + from, to - from);
		r->location[to - from] = '\0';
	}
	return len;
}

bool signal_resolve(const char *base, const char *location, char out[SIGNAL_URL_BYTES])
{
	CURLU *url = curl_url();
	char *text = NULL;
	bool ok = false;

	if (url && curl_url_set(url, CURLUPART_URL, base, 0) == CURLUE_OK &&
	    curl_url_set(url, CURLUPART_URL, location, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK)
		ok = strlen(text) < SIGNAL_URL_BYTES &&
		     (strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0);
	if (ok)
		memcpy(out, text, strlen(text) + 1);
	curl_free(text);
	curl_url_cleanup(url);
	return ok;
}

int signal_split(const char *url, char *host, size_t host_cap, char port[8])
{
	CURLU *u = curl_url();
	char *h = NULL, *p = NULL;
	size_t n;
	int err = -EINVAL;

	if (u && (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) &&
	    curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_HOST, &h, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_PORT, &p, CURLU_DEFAULT_PORT) == CURLUE_OK) {
		n = strlen(h);
		if (h[0] == '[' && n >= 2)
			snprintf(host, host_cap, "%.*s", (int)(n - 2), h + 1);
		else
			snprintf(host, host_cap, "%s", h);
		snprintf(port, 8, "%s", p);
		err = 0;
	}
	curl_free(h);
	curl_free(p);
	curl_url_cleanup(u);
	return err;
}

static void finish(struct request *r, CURLcode code)
{
	char location[SIGNAL_URL_BYTES] = "";
	struct signal_result result = { .body = r->body ? r->body : "",
					.body_bytes = r->body_bytes,
					.location = location };
	curl_off_t retry_after_s = 0;
	char *url = NULL;

	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &result.status);
	curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	curl_easy_getinfo(r->easy, CURLINFO_EFFECTIVE_URL, &url);
	if (retry_after_s > 0 && retry_after_s < 3600)
		result.retry_after_s = (unsigned)retry_after_s;
	if (code != CURLE_OK) {
		result.status = 0;
		result.error = r->error[0] ? r->error : curl_easy_strerror(code);
		result.is_unreachable =
		    code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
	} else if (r->location[0] && url && !signal_resolve(url, r->location, location)) {
		location[0] = '\0';
	}
	if (r->on_result)
		r->on_result(r->arg, &result);
	release(r);
}

static void finish_all(struct signal_client *c)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(c->multi, &left))) {
		struct request *r = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &r);
		finish(r, message->data.result);
	}
}

/* --- the request ----------------------------------------------------------------------- */

static bool add_field(struct request *r, const char *text)
{
	struct curl_slist *longer = curl_slist_append(r->fields, text);

	if (longer)
		r->fields = longer;
	return longer != NULL;
}

static bool add_token(struct request *r, const char *token)
{
	static const char start[] = "Authorization: Bearer ";
	size_t size = sizeof(start) + strlen(token);
	char *text = malloc(size);
	bool ok;

	if (!text)
		return false;
	snprintf(text, size, "%s%s", start, token);
	ok = add_field(r, text);
	free(text);
	return ok;
}

static bool set_options(struct request *r, const char *url, const char *offer)
{
	CURL *e = r->easy;

	if (offer) {
		curl_easy_setopt(e, CURLOPT_POST, 1L);
		if (curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, offer) != CURLE_OK)
			return false;
	} else {
		curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "DELETE");
	}
	curl_easy_setopt(e, CURLOPT_PRIVATE, r);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->error);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->fields);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_field);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L); /* 307 and 308 repeat the POST */
	curl_easy_setopt(e, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)SIGNAL_TIMEOUT_MS);
	return curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK;
}

static int begin(struct signal_client *c, const char *url, const char *token, const char *offer,
		 struct request *r)
{
	bool ok;

	r->client = c;
	r->next = c->requests;
	if (r->next)
		r->next->prev = r;
	c->requests = r;
	r->easy = curl_easy_init();
	/* Without "Expect:" libcurl asks for leave before it sends a larger offer. */
	ok = r->easy && add_field(r, "Expect:") &&
	     (!offer || (add_field(r, "Content-Type: application/sdp") &&
			 add_field(r, "Accept: application/sdp"))) &&
	     (!token || add_token(r, token)) && set_options(r, url, offer) &&
	     curl_multi_add_handle(c->multi, r->easy) == CURLM_OK;
	if (!ok)
		release(r);
	return ok ? 0 : -ENOMEM;
}

int signal_post(struct signal_client *c, const char *url, const char *token, const char *offer,
		signal_on_result *on_result, void *arg)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->on_result = on_result;
	r->arg = arg;
	return begin(c, url, token, offer, r);
}

int signal_delete(struct signal_client *c, const char *url, const char *token,
		  signal_on_result *on_result, void *arg)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->on_result = on_result;
	r->arg = arg;
	return begin(c, url, token, NULL, r);
}

void signal_forget(struct signal_client *c, const void *arg)
{
	for (struct request *r = c->requests; r; r = r->next)
		if (r->arg == arg)
			r->on_result = NULL;
}
