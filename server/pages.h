/* server/pages.h - the pages for people, compiled into the program from server/pages/.
 *
 * Thread: control only. The texts are constants.
 */
#ifndef SERVER_PAGES_H
#define SERVER_PAGES_H

#include "server/http_request.h"

/** Answer any request of these routes: the file, 404 or 405. */
void pages_handle(const struct http_request *req, struct http_reply *reply);

#endif
