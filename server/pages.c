#include "server/pages.h"

/* The files as they are: no generated source, no step for whoever edits a page but make. */
#define PAGE(symbol, file)                                                                         \
	__asm__(".pushsection .rodata\n"                                                           \
		".global page_" #symbol "\n"                                                       \
		"page_" #symbol ":\n"                                                              \
		".incbin \"server/pages/" file "\"\n"                                              \
		".global page_" #symbol "_end\n"                                                   \
		"page_" #symbol "_end:\n"                                                          \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char page_##symbol[];                                                         \
	extern const char page_##symbol##_end[]

PAGE(dashboard_html, "dashboard.html");
PAGE(dashboard_js, "dashboard.js");
PAGE(publish_html, "publish.html");
PAGE(publish_js, "publish.js");
PAGE(watch_html, "watch.html");
PAGE(watch_js, "watch.js");
PAGE(common_js, "common.js");
PAGE(layers_js, "layers.js");
PAGE(buffer_js, "buffer.js");
PAGE(picture_js, "picture.js");
PAGE(ticker_js, "ticker.js");
PAGE(style_css, "style.css");

struct page {
	enum http_route_kind route;
	const char *name; /* HTTP_ROUTE_PAGE_FILE */
	const char *type;
	const char *begin;
	const char *end;
};

static const char html[] = "text/html; charset=utf-8";
static const char js[] = "text/javascript; charset=utf-8";
static const char css[] = "text/css; charset=utf-8";

static const struct page pages[] = {
	{ HTTP_ROUTE_PAGE_DASHBOARD, "", html, page_dashboard_html, page_dashboard_html_end },
	{ HTTP_ROUTE_PAGE_PUBLISH, "", html, page_publish_html, page_publish_html_end },
	{ HTTP_ROUTE_PAGE_WATCH, "", html, page_watch_html, page_watch_html_end },
	{ HTTP_ROUTE_PAGE_FILE, "dashboard.js", js, page_dashboard_js, page_dashboard_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "publish.js", js, page_publish_js, page_publish_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "watch.js", js, page_watch_js, page_watch_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "common.js", js, page_common_js, page_common_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "layers.js", js, page_layers_js, page_layers_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "buffer.js", js, page_buffer_js, page_buffer_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "picture.js", js, page_picture_js, page_picture_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "ticker.js", js, page_ticker_js, page_ticker_js_end },
	{ HTTP_ROUTE_PAGE_FILE, "style.css", css, page_style_css, page_style_css_end },
};

static const struct page *page_of(const struct http_route *route)
{
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (pages[i].route == route->kind && (route->kind != HTTP_ROUTE_PAGE_FILE ||
						      strcmp(pages[i].name, route->name) == 0))
			return &pages[i];
	return NULL;
}

void pages_handle(const struct http_request *req, struct http_reply *reply)
{
	const struct page *p = page_of(&req->route);

	if (!p) {
		http_reply_problem(reply, 404, "There is no such page.");
		return;
	}
	if (req->method != HTTP_GET && req->method != HTTP_HEAD) {
		http_reply_not_allowed(reply, "GET, HEAD");
		return;
	}
	reply->status = 200;
	reply->type = p->type;
	reply->body = p->begin;
	reply->body_bytes = (size_t)(p->end - p->begin);
	reply->is_body_static = true;
	/* Nothing from elsewhere, nothing inline: a stream's name or a reason shown on a page cannot
	 * become script. The address may hold a token, so it goes nowhere. */
	http_reply_field(reply, "Content-Security-Policy",
			 "default-src 'none'; script-src 'self'; style-src 'self'; "
			 "connect-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
			 "base-uri 'none'; form-action 'none'; frame-ancestors 'self'");
	http_reply_field(reply, "Referrer-Policy", "no-referrer");
	http_reply_field(reply, "Cache-Control", "no-cache");
}
