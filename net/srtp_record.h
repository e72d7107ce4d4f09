/* net/srtp_record.h - debug builds: no index of a send context is sealed with two contents.
 *
 * Source: RFC 7714 section 8.4 (what a repeated initialization vector gives away).
 * Memory: one allocation when created; the oldest of SEAL_RECORD_SEALS is forgotten.
 */
#ifndef NET_SRTP_RECORD_H
#define NET_SRTP_RECORD_H

#include "net/srtp.h"

enum { SEAL_RECORD_SEALS = 1024 }; /* power of two */

struct seal_record;

/** @return 0 or -ENOMEM */
int seal_record_create(struct seal_record **out);
/** NULL is allowed. */
void seal_record_destroy(struct seal_record *r);

/** @return false when this SSRC and index were sealed before with another content */
bool seal_record_is_consistent(struct seal_record *r, const struct seal_job *job);

#endif
