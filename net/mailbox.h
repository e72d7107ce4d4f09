/* net/mailbox.h - control messages from any thread to one.
 *
 * A lock-free stack that the owner takes whole and turns round, so that mail of one sender arrives
 * in its order. Not for packets: those travel by ring.
 *
 * Thread: mailbox_post() any; mailbox_take() the owner.
 * Memory: mail is the sender's allocation and the receiver's to free.
 */
#ifndef NET_MAILBOX_H
#define NET_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mail {
	struct mail *next;
};

struct mailbox {
	struct mail *_Atomic newest;
};

static inline void mailbox_init(struct mailbox *m)
{
	atomic_init(&m->newest, NULL);
}

/** @return true when the box was empty: the caller wakes the owner */
static inline bool mailbox_post(struct mailbox *m, struct mail *mail)
{
	struct mail *newest = atomic_load_explicit(&m->newest, memory_order_relaxed);

	do
		mail->next = newest;
	/* R1, pairs with A1: the mail is written before the owner sees it. */
	while (!atomic_compare_exchange_weak_explicit(&m->newest, &newest, mail,
						      memory_order_release, memory_order_relaxed));
	return newest == NULL;
}

/** All mail, oldest first, linked by next; NULL when there is none. */
static inline struct mail *mailbox_take(struct mailbox *m)
{
	struct mail *newest;
	struct mail *oldest = NULL;

	if (!atomic_load_explicit(&m->newest, memory_order_relaxed))
		return NULL;
	newest = atomic_exchange_explicit(&m->newest, NULL, memory_order_acquire); /* A1 */
	while (newest) {
		struct mail *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

#endif
