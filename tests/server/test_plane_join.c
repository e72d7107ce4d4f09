#include <criterion/criterion.h>

#include "tests/server/kit_plane.h"

TestSuite(plane_join, .timeout = 20);

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

Test(plane_join, media_goes_from_publisher_to_viewer)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v;

	kit_plane_advance(p, 100000);
	v = kit_peer_join(p, "live", &viewer);
	kit_peer_send_frame(source, true, 3, 1000, NULL);
	kit_peer_send_audio(source);
	kit_plane_advance(p, 20000);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 3);
	cr_expect_eq(kit_peer_count(v, MEDIA_AUDIO, false), 1);
	kit_plane_close(p);
}
