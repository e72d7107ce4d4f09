#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "net/lifetime.h"

TestSuite(lifetime, .timeout = 10);

Test(lifetime, the_first_reason_wins_and_never_changes)
{
	struct lifetime l;

	lifetime_init(&l);
	cr_expect_not(lifetime_is_closed(&l));
	cr_expect_eq(lifetime_reason(&l), 0);
	cr_expect(lifetime_close(&l, 7));
	cr_expect_not(lifetime_close(&l, 8));
	cr_expect(lifetime_is_closed(&l));
	cr_expect_eq(lifetime_reason(&l), 7);
}

Test(lifetime, the_owner_never_waits_for_itself)
{
	struct lifetime l;

	lifetime_init(&l);
	lifetime_close(&l, 1);
	cr_expect_eq(lifetime_wait(&l, 60000000), -EDEADLK);
	lifetime_acknowledge(&l);
	cr_expect_eq(lifetime_wait(&l, 0), 0, "ended: nothing to wait for");
}

static void *wait_briefly(void *arg)
{
	return (void *)(intptr_t)lifetime_wait(arg, 1000);
}

Test(lifetime, a_wait_is_bounded)
{
	struct lifetime l;
	pthread_t thread;
	void *result;

	lifetime_init(&l);
	lifetime_close(&l, 1);
	pthread_create(&thread, NULL, wait_briefly, &l);
	pthread_join(thread, &result);
	cr_expect_eq((intptr_t)result, -ETIMEDOUT);
}

static void *wait_long(void *arg)
{
	return (void *)(intptr_t)lifetime_wait(arg, 60000000);
}

Test(lifetime, the_acknowledgement_wakes_every_waiter)
{
	struct lifetime l;
	pthread_t threads[8];
	void *result;

	lifetime_init(&l);
	lifetime_close(&l, 1);
	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, wait_long, &l);
	lifetime_acknowledge(&l);
	lifetime_acknowledge(&l);
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(threads[i], &result);
		cr_expect_eq((intptr_t)result, 0);
	}
}

Test(lifetime, only_what_is_closed_can_be_acknowledged, .signal = SIGABRT)
{
	struct lifetime l;

	lifetime_init(&l);
	lifetime_acknowledge(&l);
}
