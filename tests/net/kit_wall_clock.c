#include "tests/net/kit_wall_clock.h"

#include <sys/time.h>
#include <time.h>

static uint64_t fake_us;

void wall_clock_set_us(uint64_t now_us)
{
	fake_us = now_us;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	struct timespec now;

	(void)tz;
	clock_gettime(CLOCK_REALTIME, &now);
	tv->tv_sec = fake_us ? (time_t)(fake_us / 1000000) : now.tv_sec;
	tv->tv_usec = fake_us ? (suseconds_t)(fake_us % 1000000) : now.tv_nsec / 1000;
	return 0;
}
