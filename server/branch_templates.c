/* server/branch_templates.c - headers that viewers of one mapping share. */
#include <stdlib.h>

#include "server/branch.h"

struct templates *branch_templates(struct branch *b, const struct mapping *mapping, uint8_t track)
{
	struct templates *t;

	for (t = b->templates; t; t = t->next) {
		if (t->track == track && mapping_is_equal(&t->mapping, mapping)) {
			t->viewers++;
			return t;
		}
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->mapping = *mapping;
	t->track = track;
	t->viewers = 1;
	t->next = b->templates;
	b->templates = t;
	return t;
}

void branch_release_templates(struct branch *b, struct templates *t)
{
	if (!t || --t->viewers)
		return;
	for (struct templates **at = &b->templates; *at; at = &(*at)->next) {
		if (*at != t)
			continue;
		*at = t->next;
		free(t);
		return;
	}
}
