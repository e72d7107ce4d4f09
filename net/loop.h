/* net/loop.h - one thread's event loop: descriptors, one timer, wake-ups, signals, work off-thread.
 *
 * The only face of libuv outside net/: its types and codes stop in loop.c.
 *
 * Thread: a loop belongs to the thread that runs it; every call is made there (or before it runs),
 *         except loop_wake().
 * Memory: handles are released with the loop's next turn after their _close(); the loop owns
 *         none of the callers' arguments.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_watch;
struct loop_timer;
struct loop_waker;

enum { LOOP_READABLE = 1, LOOP_WRITABLE = 2 };

/** @return 0 or -ENOMEM, -EMFILE and what else epoll_create1 may give */
int loop_create(struct loop **out);

/** Every watch, timer and waker must have been closed. Runs the loop until they are gone. */
void loop_destroy(struct loop *l);

/** Run until loop_stop(). */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/** Monotonic time in microseconds, read from the clock by this call. The same clock in every
 *  loop of the process. */
uint64_t clock_now_us(void);

/** Called on each turn just before the loop would sleep: flush what was gathered. Return true to
 *  be called again without sleeping (descriptors are still polled between). NULL: none. */
void loop_on_turn(struct loop *l, bool (*turn)(void *arg), void *arg);

/** Watch a descriptor; on_ready gets LOOP_ bits (an error counts as both). The descriptor stays
 *  the caller's. @return 0 or a negative errno */
int loop_watch_open(struct loop *l, struct loop_watch **out, int fd,
		    void (*on_ready)(void *arg, unsigned events), void *arg);
/** Which events from now on; 0 pauses. */
void loop_watch_set(struct loop_watch *w, unsigned events);
/** After this on_ready is not called again. NULL is allowed. */
void loop_watch_close(struct loop_watch *w);

/** A one-shot timer, disarmed. @return 0 or -ENOMEM */
int loop_timer_open(struct loop *l, struct loop_timer **out, void (*on_due)(void *arg), void *arg);
/** Fire at absolute clock_now_us() time, rounded up to a millisecond; UINT64_MAX disarms. */
void loop_timer_arm(struct loop_timer *t, uint64_t due_us);
void loop_timer_close(struct loop_timer *t);

/** @return 0 or -ENOMEM */
int loop_waker_open(struct loop *l, struct loop_waker **out, void (*on_wake)(void *arg), void *arg);
/** Any thread: on_wake runs on the loop, once for any number of calls before it runs. */
void loop_wake(struct loop_waker *w);
void loop_waker_close(struct loop_waker *w);

/** Call on_signal on the loop when the process gets signo. Released with the loop.
 *  @return 0 or a negative errno */
int loop_on_signal(struct loop *l, int signo, void (*on_signal)(void *arg, int signo), void *arg);

/** Set the size and niceness of the helper threads (crypto). Once, before the first loop_submit();
 *  threads from 1 to 64. */
void loop_set_helpers(unsigned threads);

/** Run `run` on a helper thread, then `done` on this loop.
 *  @return 0 or -ENOMEM (nothing runs) */
int loop_submit(struct loop *l, void (*run)(void *arg), void (*done)(void *arg), void *arg);

#endif
