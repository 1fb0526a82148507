/* SPDX-License-Identifier: BSD-3-Clause */
/* C++ exceptions in kernels of the host device: the threads of a block share the CPU thread of which the C++ runtime
 * keeps the exceptions, and switch within handlers. */
#ifndef TESTS_HOSTDEV_EXCEPTIONS_HPP
#define TESTS_HOSTDEV_EXCEPTIONS_HPP

#include <exception>
#include <string>

#include <gdr/launch.h>
#include <gdr/simt.h>

#define EXCEPTIONS_THREADS 8u

struct exceptions_args {
	unsigned *wrong; /* an exception of another thread's, or a number of uncaught ones that is not its own */
};

struct thread_error {
	std::string text;
	explicit thread_error(unsigned thread)
	    : text("an exception that is long enough for the heap, of thread " + std::to_string(thread))
	{
	}
	bool is_of(unsigned thread) const
	{
		return text == thread_error(thread).text;
	}
};

static inline void exceptions_count(unsigned *wrong, bool right)
{
	if (!right)
		__atomic_fetch_add(wrong, 1, __ATOMIC_RELAXED); /* a count; pairs with nothing */
}

/* Each throws on what it has caught, when all have caught theirs. */
GDR_KERNEL(throws_on, struct exceptions_args, a)
{
	unsigned me = gdr_thread_id();

	try {
		try {
			throw thread_error(me);
		} catch (thread_error &e) {
			gdr_sync_block();
			exceptions_count(a.wrong, e.is_of(me));
			throw;
		}
	} catch (thread_error &e) {
		gdr_sync_block();
		exceptions_count(a.wrong, e.is_of(me));
	}
}

/* Handlers end in the order in which they began, and not as on a stack. */
GDR_KERNEL(first_out, struct exceptions_args, a)
{
	unsigned me = gdr_thread_id();

	try {
		throw thread_error(me);
	} catch (thread_error &e) {
		for (unsigned i = 0; i <= me; i++)
			gdr_sync_block();
		exceptions_count(a.wrong, e.is_of(me));
	}
	for (unsigned i = me + 1; i < EXCEPTIONS_THREADS; i++)
		gdr_sync_block();
}

struct meets_others {
	unsigned *wrong;
	~meets_others()
	{
		gdr_sync_block();
		exceptions_count(wrong, std::uncaught_exceptions() == (gdr_thread_id() % 2 ? 1 : 0));
	}
};

/* Every other thread throws; all meet in destructors, on the way out of the exception or of the block. */
GDR_KERNEL(on_the_way, struct exceptions_args, a)
{
	try {
		meets_others others = {a.wrong};

		if (gdr_thread_id() % 2)
			throw 1;
	} catch (int) {
	}
	gdr_sync_block();
	exceptions_count(a.wrong, std::uncaught_exceptions() == 0 && !std::current_exception());
}

/* Wrong ends of the threads of the three, or a negative status. */
static inline int exceptions_run()
{
	unsigned wrong = 0;
	struct exceptions_args a = {&wrong};
	int ret = gdr_launch(throws_on, 1, EXCEPTIONS_THREADS, 0, NULL, &a);

	if (!ret)
		ret = gdr_launch(first_out, 1, EXCEPTIONS_THREADS, 0, NULL, &a);
	if (!ret)
		ret = gdr_launch(on_the_way, 1, EXCEPTIONS_THREADS, 0, NULL, &a);
	if (!ret)
		ret = gdr_stream_sync(NULL);
	return ret ? ret : (int)wrong;
}

#endif
