/* Four senders, one reader: every letter arrives once, those of a sender in order. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/mailbox.h"

enum { SENDERS = 4, LETTERS = 50000 };

struct numbered {
	struct mail mail;
	unsigned sender, number;
};

static struct mailbox box;

static void *send_all(void *arg)
{
	unsigned sender = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < LETTERS; i++) {
		struct numbered *n = malloc(sizeof(*n));

		if (!n)
			abort();
		n->sender = sender;
		n->number = i;
		mailbox_post(&box, &n->mail);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[SENDERS];
	unsigned next[SENDERS] = { 0 };
	unsigned total = 0;

	mailbox_init(&box);
	for (uintptr_t i = 0; i < SENDERS; i++)
		if (pthread_create(&threads[i], NULL, send_all, (void *)i))
			return 2;
	while (total < SENDERS * LETTERS) {
		for (struct mail *mail = mailbox_take(&box), *following; mail; mail = following) {
			struct numbered *n = (struct numbered *)mail;

			following = mail->next;
			if (n->number != next[n->sender]++) {
				fprintf(stderr, "sender %u: letter %u out of order\n", n->sender,
					n->number);
				return 1;
			}
			total++;
			free(n);
		}
	}
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	return mailbox_take(&box) != NULL;
}
