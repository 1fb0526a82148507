// SPDX-License-Identifier: BSD-3-Clause
/* Requests to the kernel of the library on a GPU. */
#include <stdlib.h>
#include <time.h>

#include <gdr/device.h>
#include <gdr/impl/coll/direct/aligned.h>

#include "runtime/core/clock.h"
#include "runtime/core/state.h"
#include "runtime/core/thread.h"
#include "runtime/cuda/cuda_impl.h"
#include "runtime/cuda/units.h"
#include "runtime/cuda/prefetch.h"
#include "runtime/exec/exec.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/window.h"

#define CALLS 8	      /* host threads that wait at the same time */
#define LAST_DEFAULT 2u /* CU_STREAM_PER_THREAD: streams with numbers for handles */
#define LOOK_MS 10    /* between looks at calls that were given up */
#define SLACK_MS 5000 /* kernels end by themselves: this is for a GPU that does not run them */

struct call {
	gdri_cu_stream stream;	    /* but for the first one made when it is needed: a process has few channels to a
				     * GPU, and streams of one channel wait for each other's kernels */
	struct gdri_answer *answer; /* the GPU sees it */
	bool busy;
	bool late; /* given up, but its kernel may yet answer */
};

struct kernels {
	struct CUmod_st *module, *direct;
	struct CUfunc_st *all, *grid;
};

struct gdri_executor {
	struct kernels plain, any; /* any: what finds memory of cudaMalloc; none, where there never was such memory */
	bool shows_any;
	struct CUfunc_st *flat, *team, *ctas;
	gdri_cu_result loaded; /* or why not */
	struct call calls[CALLS];
	pthread_mutex_t lock; /* of busy and late */
	pthread_cond_t free;
};

/* With nothing to do. The driver makes room for a kernel's stack at the first launch of one that needs more than those
 * before, and waits for all that runs on the GPU then, with its lock held: a kernel of the program that waits for what
 * a host thread asks for, or for a network whose thread needs the driver, would wait for the time limit. */
static gdri_cu_result exec_make_room(struct gdri_cuda *c, const struct gdri_executor *p, struct CUfunc_st *kernel)
{
	struct gdri_request none = {.by = GDRI_BY_NONE};
	void *args[] = {&none};

	return c->api.launch(kernel, 1, 1, 1, 1, 1, 1, 0, p->calls[0].stream, args, NULL);
}

/* Of the kernels, `all` has the largest stack. */
static gdri_cu_result load_two(struct gdri_cuda *c, const struct gdri_executor *p, struct kernels *k,
			       enum gdri_image all, enum gdri_image direct)
{
	const struct gdri_cuda_api *api = &c->api;
	size_t size;
	gdri_cu_result r = api->module_load(&k->module, gdri_exec_image(all, &size));

	if (!r)
		r = api->module_function(&k->all, k->module, "gdri_kernel_request");
	if (!r)
		r = api->module_load(&k->direct, gdri_exec_image(direct, &size));
	if (!r)
		r = api->module_function(&k->grid, k->direct, "gdri_kernel_grid");
	return r ? r : exec_make_room(c, p, k->all);
}

static gdri_cu_result exec_load(struct gdri_cuda *c, struct gdri_executor *p)
{
	gdri_cu_result r = c->api.stream_create(&p->calls[0].stream, GDRI_CU_STREAM_NON_BLOCKING);

	if (!r)
		r = load_two(c, p, &p->plain, GDRI_IMAGE_ALL, GDRI_IMAGE_DIRECT);
	if (!r)
		r = c->api.module_function(&p->ctas, p->plain.direct, "gdri_kernel_ctas");
	if (!r)
		r = c->api.module_function(&p->team, p->plain.direct, "gdri_kernel_team");
	return r ? r : c->api.module_function(&p->flat, p->plain.direct, "gdri_kernel_flat");
}

static void unload_two(struct gdri_cuda *c, struct kernels *k)
{
	if (k->module)
		c->api.module_unload(k->module);
	if (k->direct)
		c->api.module_unload(k->direct);
	*k = (struct kernels){0};
}

static gdri_cu_result open_calls(struct gdri_state *st, struct gdri_executor *p)
{
	p->calls[0].answer = gdri_cuda_alloc_host(st->cuda, CALLS * sizeof(struct gdri_answer));
	if (!p->calls[0].answer)
		return 2; /* CUDA_ERROR_OUT_OF_MEMORY; logged */
	for (int i = 1; i < CALLS; i++)
		p->calls[i].answer = p->calls[0].answer + i;
	return 0;
}

struct gdri_executor *gdri_exec_load(struct gdri_cuda *c)
{
	struct gdri_executor *p;
	size_t size;

	gdri_exec_image(GDRI_IMAGE_ALL, &size);
	p = size ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	gdri_cond_init(&p->free);
	gdri_cuda_enter(c);
	p->loaded = exec_load(c, p);
	gdri_cuda_leave(c);
	return p;
}

void gdri_exec_drop(struct gdri_cuda *c, struct gdri_executor *p)
{
	if (!p)
		return;
	gdri_cuda_enter(c);
	for (int i = 0; i < CALLS; i++)
		if (p->calls[i].stream)
			c->api.stream_destroy(p->calls[i].stream);
	unload_two(c, &p->any);
	unload_two(c, &p->plain);
	gdri_cuda_leave(c);
	gdri_cuda_free_host(c, p->calls[0].answer);
	pthread_cond_destroy(&p->free);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Those that are not launched know no queues, and are not told of the library. */
static int exec_show(struct gdri_state *st, const struct kernels *k)
{
	int ret = gdri_module_add(st, k->module);

	return ret || !st->constants || !st->constants->direct ? ret : gdri_module_add(st, k->direct);
}

void gdri_exec_up(struct gdri_state *st)
{
	struct gdri_executor *p = gdri_prefetch_executor(st);
	gdri_cu_result r;
	int ret;

	if (!p)
		p = gdri_exec_load(st->cuda);
	if (!p)
		return;
	st->executor = p;
	r = p->loaded;
	if (!r) {
		gdri_cuda_enter(st->cuda);
		r = open_calls(st, p);
		gdri_cuda_leave(st->cuda);
	}
	ret = r ? 0 : exec_show(st, &p->plain);
	if (!r && !ret)
		return;
	gdri_module_drop(st, p->plain.direct);
	gdri_module_drop(st, p->plain.module);
	gdri_info("CUDA: the library's kernels cannot be used on %s: %s", gdri_cuda_text(st->cuda),
		  r ? gdri_cuda_error_text(st->cuda, r) : gdr_strerror(ret));
	gdri_exec_down(st);
}

void gdri_exec_down(struct gdri_state *st)
{
	struct gdri_executor *p = st->executor;

	st->executor = NULL;
	gdri_exec_drop(st->cuda, p);
}

int gdri_exec_up_any(struct gdri_state *st)
{
	struct gdri_executor *p = st->executor;
	gdri_cu_result r = 0;
	int ret;

	if (!p || p->shows_any)
		return 0;
	gdri_cuda_enter(st->cuda);
	if (!p->any.grid)
		r = load_two(st->cuda, p, &p->any, GDRI_IMAGE_ALL_ANY, GDRI_IMAGE_DIRECT_ANY);
	if (r)
		unload_two(st->cuda, &p->any);
	gdri_cuda_leave(st->cuda);
	if (r)
		return gdri_cuda_refused(st->cuda, "loading the kernels that reach memory of cudaMalloc", r);
	pthread_mutex_lock(&st->local_lock);
	ret = exec_show(st, &p->any); /* where it is late it may yet land: they stay, for another attempt */
	pthread_mutex_unlock(&st->local_lock);
	p->shows_any = !ret;
	return ret;
}

/* Logs why. */
static int exec_missing(void)
{
	size_t size;

	gdri_exec_image(GDRI_IMAGE_ALL, &size);
	return gdri_fail(-GDR_ENOTSUP, "this call needs kernels of the library: %s",
			 size ? "they do not run on this GPU (GDR_LOG=info says why)"
			      : "it was built without nvcc; call from a kernel, or build it with -D GDR_CUDA=ON");
}

/* Address of the peer's word, or 0: not mapped. */
static gdri_cu_ptr exec_mapped(const struct gdri_state *st, const void *ptr, int pe)
{
	return (uintptr_t)gdri_window_at(st, ptr, pe);
}

/* Kernels that know no address outside the heap's range do what they can: they are the faster ones. Waits are for own
 * memory; LL by many CTAs touches own memory and the library's, wherever dest and source are. */
static const struct kernels *kernels_for(const struct gdri_state *st, const struct gdri_request *q)
{
	bool signals = q->what == GDRI_RQ_SIGNAL || q->what == GDRI_RQ_PUT_SIGNAL;
	bool any = q->what != GDRI_RQ_WAIT && q->by != GDRI_BY_CTAS &&
		   (gdri_window_is_outside(st, q->dst) || gdri_window_is_outside(st, q->src) ||
		    (signals && gdri_window_is_outside(st, q->signal.word)));

	return any ? &st->executor->any : &st->executor->plain;
}

static bool is_captured(const struct gdri_state *st, gdr_stream_t stream)
{
	int capturing = 0;

	return st->cuda->api.stream_capturing(stream, &capturing) || capturing;
}

enum way { BY_KERNEL, BY_COPY, BY_VALUE, BY_WRITE };

/* Mapped memory needs no kernel: the driver's copy, and what it stores by itself, for less than what a launch
 * costs. The stream orders them like kernels. A value is copied from pageable memory: a GPU that cannot read that
 * has the driver take it into a buffer of its own first (CUDA Driver API, "API synchronization behavior";
 * docs/perf/streams.md has what was seen), one that can might read it later, and is not given it so. What a graph
 * is made of would be read at each replay; and a signal needs the order that a stream's write has. */
static enum way way_of(const struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream)
{
	bool sets = q->what == GDRI_RQ_SIGNAL && q->signal.op == GDRI_SIGNAL_SETS;

	if (!sets && q->what != GDRI_RQ_P && q->what != GDRI_RQ_PUT && q->what != GDRI_RQ_GET)
		return BY_KERNEL;
	if (!st->peers[q->pe].base)
		return BY_KERNEL;
	if (q->what == GDRI_RQ_PUT || q->what == GDRI_RQ_GET)
		return BY_COPY;
	if (q->what == GDRI_RQ_P && st->cuda->stages && !is_captured(st, stream))
		return BY_VALUE;
	return q->size == 8 && st->cuda->writes64 ? BY_WRITE : BY_KERNEL;
}

/* Of what is known to be memory of GPUs the driver need not find out what it is. */
static gdri_cu_result exec_copy(const struct gdri_state *st, gdri_cu_ptr to, gdri_cu_ptr from, const void *own,
				   const void *remote, size_t len, gdr_stream_t stream)
{
	const struct gdri_heap *h = st->heap;
	uint64_t size = gdri_heap_size(h);
	bool gpu = h->cuda && (uintptr_t)own - (uintptr_t)h->base < size &&
		   (uintptr_t)remote - (uintptr_t)h->base < size;

	return gpu ? st->cuda->api.copy_within(to, from, len, stream) : st->cuda->api.copy(to, from, len, stream);
}

static gdri_cu_result exec_drive(struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream,
				    enum way way)
{
	const struct gdri_cuda_api *api = &st->cuda->api;
	size_t len = q->n * q->size;

	switch (way) {
	case BY_COPY:
		if (q->what == GDRI_RQ_PUT)
			return exec_copy(st, exec_mapped(st, q->dst, q->pe), (uintptr_t)q->src, q->src, q->dst,
					    len, stream);
		return exec_copy(st, (uintptr_t)q->dst, exec_mapped(st, q->src, q->pe), q->dst, q->src, len,
				    stream);
	case BY_VALUE:
		return api->copy_in(exec_mapped(st, q->dst, q->pe), q->value, q->size, stream);
	default: /* what the stream did before is seen by whoever sees the word (flags 0) */
		if (q->what == GDRI_RQ_SIGNAL)
			return api->write64(stream, exec_mapped(st, q->signal.word, q->pe), q->signal.value, 0);
		return api->write64(stream, exec_mapped(st, q->dst, q->pe), q->value[0], 0);
	}
}

/* Collectives by many blocks have kernels of their own where all PEs are mapped: smaller, they begin sooner. They know
 * no lists of PEs. The same on all members, on whatever stream: they divide a call among the blocks in another way. */
static struct CUfunc_st *by_blocks(const struct gdri_state *st, const struct gdri_request *q)
{
	const struct kernels *k = kernels_for(st, q);

	if (!st->constants || !st->constants->direct || (q->by != GDRI_BY_CTAS && q->by != GDRI_BY_GRID) ||
	    !q->coll.stride)
		return k->all;
	return q->by == GDRI_BY_CTAS ? st->executor->ctas : k->grid;
}

/* The results of this PE's piece to all others, by the copy engine, which fills a link as no kernel does. */
static gdri_cu_result copy_to_all(struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream)
{
	uint32_t rows = (uint32_t)(q->n * q->size / 16), n = (uint32_t)q->coll.members, i;
	uint32_t me = (uint32_t)q->coll.member, each = gdri_aligned_each(rows, n), first = each * me;
	const uint8_t *from = (const uint8_t *)q->dst + (size_t)first * 16;
	size_t len = first >= rows ? 0 : (size_t)(rows - first < each ? rows - first : each) * 16;
	gdri_cu_result r = 0;
	int pe;

	for (i = 1; i < n && len && !r; i++) { /* all to others at the same time */
		pe = q->coll.start + (int)((me + i) % n) * q->coll.stride;
		r = st->cuda->api.copy(exec_mapped(st, from, pe), (uintptr_t)from, len, stream);
	}
	return r;
}

/* Behind those copies: all have arrived. */
static struct gdri_request exec_meeting(const struct gdri_request *q)
{
	struct gdri_request m = {.what = GDRI_RQ_BARRIER, .answer = q->answer, .coll = {.team = q->coll.team}};

	if (q->coll.team == GDR_TEAM_WORLD)
		m.what = GDRI_RQ_BARRIER_ALL;
	return m;
}

static gdri_cu_result exec_launch(struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream)
{
	struct gdri_request arg = *q;
	void *args[] = {&arg};
	gdri_cu_result r;
	struct gdri_plan p;

	gdri_exec_plan(st, &arg, &p);
	r = st->cuda->api.launch(by_blocks(st, &arg), p.grid, 1, 1, p.block, 1, 1, 0, stream, args, NULL);
	if (r || arg.what != GDRI_RQ_REDUCE || !arg.coll.keep)
		return r;
	r = copy_to_all(st, &arg, stream);
	arg = exec_meeting(q);
	return r ? r : exec_launch(st, &arg, stream);
}

/* Which kernel, and what it is passed. Barriers of mapped PEs have kernels of their own, which begin sooner. */
static struct CUfunc_st *exec_choose(const struct gdri_state *st, struct gdri_request *arg, int *how,
					void **args, struct gdri_plan *p)
{
	bool all = arg->what == GDRI_RQ_BARRIER_ALL || arg->what == GDRI_RQ_SYNC_ALL;
	bool team = arg->what == GDRI_RQ_BARRIER || arg->what == GDRI_RQ_SYNC;
	bool quiet = arg->what == GDRI_RQ_BARRIER_ALL || arg->what == GDRI_RQ_BARRIER;

	if (st->constants && st->constants->direct && (team || (all && st->n_pes <= GDRI_FLAT_MAX))) {
		*how = team ? 2 * arg->coll.team + quiet : quiet;
		*args = how;
		*p = (struct gdri_plan){1, 1};
		return team ? st->executor->team : st->executor->flat;
	}
	gdri_exec_plan(st, arg, p);
	*args = arg;
	return by_blocks(st, arg);
}

/* The GPU may load the kernel while what stands before it on the stream ends: it waits for that end itself. Not
 * where a graph is made, whose edges would be of that kind too; nor on the default streams, which others wait for. */
static gdri_cu_result launch_early(struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream)
{
	struct gdri_cu_launch_attribute early = {.id = GDRI_CU_LAUNCH_EARLY, .value = {.on = 1}};
	struct gdri_request arg = *q;
	struct gdri_cu_launch how = {.stream = stream, .attributes = &early};
	struct CUfunc_st *kernel;
	struct gdri_plan p;
	gdri_cu_result r;
	void *args[1];
	int operand;

	how.n_attributes = st->cuda->early && (uintptr_t)stream > LAST_DEFAULT && !is_captured(st, stream);
	kernel = exec_choose(st, &arg, &operand, args, &p);
	how.grid[0] = p.grid;
	how.block[0] = p.block;
	how.grid[1] = how.grid[2] = how.block[1] = how.block[2] = 1;
	r = st->cuda->api.launch_ex(&how, kernel, args, NULL);
	if (r || arg.what != GDRI_RQ_REDUCE || !arg.coll.keep)
		return r;
	r = copy_to_all(st, &arg, stream);
	arg = exec_meeting(q);
	return r ? r : launch_early(st, &arg, stream);
}

int gdri_exec_on_stream(struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream)
{
	gdri_cu_result r = 0;
	bool can, entered;
	enum way way;

	entered = gdri_cuda_enter_another(st->cuda); /* before way_of: stream 0 is a stream of the context */
	way = way_of(st, q, stream);
	can = way != BY_KERNEL || st->executor;
	if (can)
		r = way != BY_KERNEL ? exec_drive(st, q, stream, way) : launch_early(st, q, stream);
	if (entered)
		gdri_cuda_leave(st->cuda);
	if (!can)
		return exec_missing();
	return r ? gdri_cuda_refused(st->cuda, "putting an operation on a stream", r) : 0;
}

int gdri_exec_lacks(const struct gdri_state *st)
{
	return st->executor ? 0 : exec_missing();
}

/* ---- calls that wait ---- */

/* Under the lock. A late call's place is free when its kernel has ended, however it did. */
static struct call *find_free(struct gdri_state *st)
{
	struct call *c = st->executor->calls, *end = c + CALLS;

	for (; c < end; c++) {
		if (c->late && st->cuda->api.stream_query(c->stream) != GDRI_CU_NOT_READY)
			c->busy = c->late = false;
		if (!c->busy)
			return c;
	}
	return NULL;
}

/* NULL: the deadline has passed. Nobody tells of a late call's end, so the wait is in short steps. */
static struct call *exec_take_call(struct gdri_state *st, uint64_t deadline)
{
	struct gdri_executor *p = st->executor;
	struct timespec ts;
	struct call *c;

	pthread_mutex_lock(&p->lock);
	gdri_cuda_enter(st->cuda);
	while (!(c = find_free(st)) && gdri_left_ms(deadline) > 0) {
		ts = gdri_deadline_at(LOOK_MS);
		pthread_cond_timedwait(&p->free, &p->lock, &ts);
	}
	gdri_cuda_leave(st->cuda);
	if (c)
		c->busy = true;
	pthread_mutex_unlock(&p->lock);
	return c;
}

static void exec_give_call(struct gdri_executor *p, struct call *c, bool late)
{
	pthread_mutex_lock(&p->lock);
	c->busy = c->late = late;
	pthread_cond_signal(&p->free);
	pthread_mutex_unlock(&p->lock);
}

/* Polls: a sleep of the driver could not be bounded. */
static gdri_cu_result exec_finish(struct gdri_state *st, gdri_cu_stream stream)
{
	uint64_t end = gdri_deadline_ns((int)st->opt.timeout_ms + SLACK_MS);
	struct timespec nap = {0, 20000};
	gdri_cu_result r;

	for (unsigned int i = 0; (r = st->cuda->api.stream_query(stream)) == GDRI_CU_NOT_READY; i++) {
		if (gdri_left_ms(end) <= 0)
			break;
		if (i > 1000)
			nanosleep(&nap, NULL);
	}
	return r;
}

int gdri_exec_now(struct gdri_state *st, const struct gdri_request *q,
		     struct gdri_answer *answer)
{
	struct gdri_request mine = *q;
	struct call *c;
	gdri_cu_result r;

	if (!st->executor)
		return exec_missing();
	c = exec_take_call(st, gdri_deadline_ns((int)st->opt.timeout_ms + SLACK_MS));
	if (!c)
		return gdri_fail(-GDR_ETIMEOUT, "CUDA: %d calls from the host are under way, and none ends", CALLS);
	mine.answer = c->answer;
	*c->answer = (struct gdri_answer){0};
	gdri_cuda_enter(st->cuda);
	r = c->stream ? 0 : st->cuda->api.stream_create(&c->stream, GDRI_CU_STREAM_NON_BLOCKING);
	if (!r)
		r = exec_launch(st, &mine, c->stream);
	if (!r)
		r = exec_finish(st, c->stream);
	gdri_cuda_leave(st->cuda);
	if (r == GDRI_CU_NOT_READY) { /* it may yet answer: the place stays taken until then */
		exec_give_call(st->executor, c, true);
		return gdri_fail(-GDR_ETIMEOUT, "CUDA: a kernel of the library does not end: the GPU hangs, or kernels "
						"hold it");
	}
	*answer = *c->answer;
	exec_give_call(st->executor, c, false);
	return r ? gdri_cuda_refused(st->cuda, "a call from the host", r) : answer->status;
}
