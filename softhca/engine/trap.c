/* SPDX-License-Identifier: BSD-3-Clause */
/* Write protection of the doorbell pages, by userfaultfd(2). Faults of user
 * mode are enough and need no privilege. A page that is protected cannot hide a doorbell:
 * the store has not happened until the page is released, and the engine looks at all
 * registers after it has protected them. So nothing is asked of the order of the two.
 *
 * Not for stores of GPUs (trap_forbid), which go by no page table of this process. */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/engine/dp.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"

enum { MAX_RANGES = 128, MAX_PAGES = 1024 };

#define AGAIN_NS 1000000000u /* a page that is not mapped yet may be so later */

struct page_range {
	uint64_t start, end;
};

static int uffd = -1, wake_fd = -1;
static struct page_range ranges[MAX_RANGES];
static unsigned n_ranges, n_pages;
static uint64_t again_at;
static bool is_set; /* the engine's own */
/* Both sequentially consistent: whoever forbids sees the engine asleep, or the engine, which
 * says so before it asks, sees that it is forbidden. */
static bool forbidden, asleep;

static bool open_fds(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
							       UFFD_FEATURE_WP_HUGETLBFS_SHMEM };

	if (uffd >= 0)
		return true;
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (uffd < 0) {
		hca_debug(1, "userfaultfd: %s; idle, the engine looks for doorbells", strerror(errno));
		return false;
	}
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd >= 0 && !ioctl(uffd, UFFDIO_API, &api))
		return true;
	close(uffd);
	if (wake_fd >= 0)
		close(wake_fd);
	uffd = wake_fd = -1;
	return false;
}

static bool trap_protect(void *arg, uint64_t start, uint64_t end)
{
	struct uffdio_register reg = { .range = { start, end - start },
				       .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect wp = { .range = reg.range,
					  .mode = UFFDIO_WRITEPROTECT_MODE_WP };

	(void)arg;
	n_pages += (unsigned)((end - start) / host_page());
	if (n_ranges == MAX_RANGES || n_pages > MAX_PAGES || ioctl(uffd, UFFDIO_REGISTER, &reg))
		return false;
	ranges[n_ranges++] = (struct page_range){ start, end };
	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &wp);
}

static bool protect_all(void)
{
	is_set = true;
	n_ranges = n_pages = 0;
	return hca_uar_mappings(trap_protect, NULL) && n_ranges;
}

bool trap_set(void)
{
	if (!is_set && dp_now() < again_at)
		return false;
	if (open_fds()) {
		__atomic_store_n(&asleep, true, __ATOMIC_SEQ_CST); /* pairs with trap_forbid(); behind wake_fd */
		if (!__atomic_load_n(&forbidden, __ATOMIC_SEQ_CST) && (is_set || protect_all()))
			return true;
	}
	trap_release();
	again_at = dp_now() + AGAIN_NS;
	return false;
}

bool trap_is_set(void)
{
	return is_set;
}

/* Page by page: the program may have unmapped some of a range. Those who wait for a page that
 * is gone are woken, too. */
static void trap_unprotect(const struct page_range *r)
{
	struct uffdio_range all = { r->start, r->end - r->start };
	uint64_t page = host_page();

	for (uint64_t at = r->start; at < r->end; at += page) {
		struct uffdio_writeprotect wp = { .range = { at, page } };

		ioctl(uffd, UFFDIO_WRITEPROTECT, &wp);
	}
	ioctl(uffd, UFFDIO_WAKE, &all);
	ioctl(uffd, UFFDIO_UNREGISTER, &all);
}

static void count_trapped(void)
{
	struct uffd_msg m;

	while (read(uffd, &m, sizeof(m)) == sizeof(m))
		STAT_INC(doorbells_trapped);
}

void trap_release(void)
{
	uint64_t n;

	/* Relaxed: at worst a wake-up too many. */
	__atomic_store_n(&asleep, false, __ATOMIC_RELAXED);
	if (!is_set)
		return;
	count_trapped();
	for (unsigned i = 0; i < n_ranges; i++)
		trap_unprotect(&ranges[i]);
	is_set = false;
	if (read(wake_fd, &n, sizeof(n)) < 0) {
		/* nobody called */
	}
}

unsigned trap_poll(struct pollfd fds[TRAP_FDS])
{
	if (!is_set)
		return 0;
	fds[0] = (struct pollfd){ .fd = uffd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	return 2;
}

void trap_wake(void)
{
	const uint64_t one = 1;
	int saved;

	/* Sequentially consistent: pairs with trap_set(). One call is enough. */
	if (!__atomic_load_n(&asleep, __ATOMIC_SEQ_CST) ||
	    !__atomic_exchange_n(&asleep, false, __ATOMIC_SEQ_CST))
		return;
	saved = errno; /* a thread that polls may come by here */
	if (wake_fd >= 0 && hca_write(wake_fd, &one, sizeof(one)) < 0) {
		/* it is full of calls */
	}
	errno = saved;
}

void trap_forbid(void)
{
	__atomic_store_n(&forbidden, true, __ATOMIC_SEQ_CST); /* pairs with trap_set() */
	trap_wake();
}

void trap_forked(void)
{
	__atomic_store_n(&asleep, false, __ATOMIC_RELAXED);
	is_set = false;
	if (uffd >= 0)
		close(uffd);
	if (wake_fd >= 0)
		close(wake_fd);
	uffd = wake_fd = -1;
	__atomic_store_n(&forbidden, true, __ATOMIC_RELAXED); /* no engine here */
}
