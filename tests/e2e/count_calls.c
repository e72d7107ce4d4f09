/* Counts, per thread, the calls that a packet path must not make: allocation and locking.
 *
 * Preloaded into the relay by test_quiet (LD_PRELOAD). Every call of the process comes through
 * here, those of libraries included. Counts lie in a file that the test maps:
 * $COUNT_CALLS, an array of struct row, one a thread.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ROWS = 256 };

struct row {
	char name[16]; /* of the thread, as last seen */
	_Atomic uint64_t allocations, frees, locks;
	uint64_t spare;
};

static struct row *rows;
static _Atomic unsigned rows_used;
static _Thread_local struct row *mine;
static _Thread_local unsigned calls;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

__attribute__((constructor)) static void map_rows(void)
{
	const char *path = getenv("COUNT_CALLS");
	int fd = path ? open(path, O_RDWR) : -1;
	void *map = fd < 0 ? MAP_FAILED
			   : mmap(NULL, ROWS * sizeof(struct row), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);

	if (map != MAP_FAILED)
		rows = map;
}

static struct row *row(void)
{
	if (!mine && rows) {
		unsigned i = atomic_fetch_add(&rows_used, 1);

		mine = &rows[i < ROWS ? i : ROWS - 1];
	}
	/* The name comes after the thread's first calls. */
	if (mine && (calls++ & 0xff) == 0)
		prctl(PR_GET_NAME, mine->name);
	return mine;
}

static void count(size_t member)
{
	struct row *r = row();

	if (r)
		atomic_fetch_add_explicit((_Atomic uint64_t *)(void *)((char *)r + member), 1,
					  memory_order_relaxed);
}

void *malloc(size_t n)
{
	count(offsetof(struct row, allocations));
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	count(offsetof(struct row, allocations));
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
	count(offsetof(struct row, allocations));
	return __libc_realloc(old, n);
}

void *memalign(size_t alignment, size_t n)
{
	count(offsetof(struct row, allocations));
	return __libc_memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	count(offsetof(struct row, allocations));
	return __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
	count(offsetof(struct row, allocations));
	*out = __libc_memalign(alignment, n);
	return *out ? 0 : 12;
}

void free(void *p)
{
	count(offsetof(struct row, frees));
	__libc_free(p);
}

/* The real one, looked up once; the look-up itself may lock. */
#define FORWARD_LOCK(name, type)                                                                   \
	int name(type *lock)                                                                       \
	{                                                                                          \
		static int (*_Atomic real)(type *);                                                \
		int (*call)(type *) = atomic_load(&real);                                          \
                                                                                                   \
		if (!call) {                                                                       \
			*(void **)(&call) = dlsym(RTLD_NEXT, #name);                               \
			atomic_store(&real, call);                                                 \
		}                                                                                  \
		count(offsetof(struct row, locks));                                                \
		return call(lock);                                                                 \
	}

FORWARD_LOCK(pthread_mutex_lock, pthread_mutex_t)
FORWARD_LOCK(pthread_mutex_trylock, pthread_mutex_t)
FORWARD_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
FORWARD_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	static int (*_Atomic real)(pthread_spinlock_t *);
	int (*call)(pthread_spinlock_t *) = atomic_load(&real);

	if (!call) {
		*(void **)(&call) = dlsym(RTLD_NEXT, "pthread_spin_lock");
		atomic_store(&real, call);
	}
	count(offsetof(struct row, locks));
	return call(lock);
}
