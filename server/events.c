#include "server/events.h"

#include <string.h>

const char events_names[] = "active,inactive,layers,reconnect,viewercount";

static const char *const names[EVENT_KINDS] = {
	[EVENT_ACTIVE] = "active",           [EVENT_INACTIVE] = "inactive",
	[EVENT_LAYERS] = "layers",           [EVENT_RECONNECT] = "reconnect",
	[EVENT_VIEWERCOUNT] = "viewercount",
};

const char *event_kind_name(enum event_kind kind)
{
	return names[kind];
}

enum event_kind event_kind_of(const char *name)
{
	enum event_kind kind = 0;

	while (kind < EVENT_KINDS && strcmp(names[kind], name) != 0)
		kind++;
	return kind;
}
