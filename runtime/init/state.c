// SPDX-License-Identifier: BSD-3-Clause

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <gdr/device.h>

#include "bootstrap/boot.h"
#include "runtime/core/agree.h"
#include "runtime/core/clock.h"
#include "runtime/core/descriptors.h"
#include "runtime/core/log.h"
#include "runtime/core/host_barrier.h"
#include "runtime/core/range.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/cuda/prefetch.h"
#include "runtime/cuda/units.h"
#include "runtime/diag/errors.h"
#include "runtime/diag/fault.h"
#include "runtime/hostdev/hostdev.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/host_view.h"
#include "runtime/mem/outside.h"
#include "runtime/mem/share.h"
#include "runtime/mem/suballoc.h"
#include "runtime/mem/symmetric.h"
#include "runtime/net/net.h"
#include "runtime/path/ctx.h"
#include "runtime/path/devstate.h"
#include "runtime/team/coll.h"
#include "runtime/team/join_record.h"
#include "runtime/team/team.h"

#define WAITS_END_MS 1000 /* for waits that are told to end */
#define KERNELS_END_MS 2000 /* for kernels whose waits are told to end */

static struct gdri_state *current;
static bool forked; /* from a PE: set while the process has one thread */

struct gdri_state *gdri_state_get(void)
{
	/* acquire: pairs with the release in gdri_state_up */
	return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

bool gdri_state_forked(void)
{
	return forked;
}

/* A forked child has none of our threads and must not touch queues or peers: to it the
 * library is not initialised. What it inherited goes when it ends or calls exec. */
static void state_in_child(void)
{
	forked |= current != NULL; /* a child has one thread */
	__atomic_store_n(&current, NULL, __ATOMIC_RELAXED);
	gdri_devstate_publish(NULL);
	gdri_hd_backoff_forget();
}

static void state_once(void)
{
	gdri_host_barrier_looks(gdri_absent_look, gdri_join_absent);
	if (pthread_atfork(NULL, NULL, state_in_child))
		gdri_warn("pthread_atfork failed: a forked child must not call gdr");
}

static int open_bootstrap(struct gdri_state *st)
{
	struct gdri_boot_how how = {.opt = &st->opt};
	const struct gdr_init_attr *attr = st->attr;
	int left = gdri_left_ms(st->deadline_ns);

	gdri_boot_limit("GDR_INIT_TIMEOUT", st->opt.init_timeout_ms);
	GDR_STATIC_ASSERT(sizeof(attr->uniqueid->bytes) == GDRI_UID_BYTES, "the id of bootstrap/boot.h");
	if (attr) {
		how.uniqueid = attr->uniqueid ? attr->uniqueid->bytes : NULL;
		how.pe = attr->pe;
		how.n_pes = attr->n_pes;
		how.mpi_comm = attr->mpi_comm;
	}
	return gdri_bootstrap_open(&st->boot, &how, left);
}

static int up_bootstrap(struct gdri_state *st)
{
	int ret = st->boot ? 0 : open_bootstrap(st);

	if (ret)
		return ret;
	if (st->boot->version != GDR_BOOTSTRAP_VERSION || st->boot->size < sizeof(*st->boot) ||
	    st->boot->n_pes < 1 || st->boot->pe < 0 || st->boot->pe >= st->boot->n_pes)
		return gdri_fail(-GDR_EVERSION,
				 "bootstrap: version %u, %u bytes, PE %d of %d: not one that this library can use "
				 "(version %u)",
				 st->boot->version, st->boot->size, st->boot->pe, st->boot->n_pes,
				 GDR_BOOTSTRAP_VERSION);
	st->pe = st->boot->pe;
	st->n_pes = st->boot->n_pes;
	gdri_log_set_pe(st->pe);
	return 0;
}

static void down_bootstrap(struct gdri_state *st)
{
	int left = gdri_left_ms(st->deadline_ns);

	if (st->boot && st->boot->finalize)
		st->boot->finalize(st->boot, left > 1000 ? left : 1000);
	st->boot = NULL;
	gdri_log_set_pe(-1);
}

static int up_host_device(struct gdri_state *st)
{
	struct gdri_hd_params p = {st->opt.host_device_blocks, st->opt.host_device_stack,
				    (unsigned)st->opt.timeout_ms};
	int ret = gdri_hd_init(&p);

	if (ret)
		gdri_error("host device: %u blocks with stacks of %zu bytes: %s", p.max_blocks,
			   p.stack_size, gdr_strerror(ret));
	return ret;
}

static int up_heap(struct gdri_state *st)
{
	bool in_host = st->opt.heap_kind == GDRI_MEMORY_HOST;
	int ret;

	if (!st->cuda && st->opt.heap_kind == GDRI_MEMORY_GPU)
		return gdri_fail(-GDR_EOPTION,
				 "GDR_HEAP_KIND=gpu, but kernels run on the host device here, and the heap lies in "
				 "memory of the host: unset it, or build program and library for GPUs");
	ret = gdri_prefetch_heap(st) ? 0 : gdri_heap_make(st->heap, st->cuda, in_host, st->opt.heap_size,
							    st->opt.heap_max);

	if (!ret)
		ret = gdri_heap_mark(st->heap, st->pe);
	if (!ret && st->cuda)
		ret = gdri_page_open(st);
	if (ret)
		return ret;
	ret = gdri_teams_plan(st, st->heap->size);
	if (ret) {
		gdri_error("heap: %llu bytes are too few for the teams of %d PEs; raise GDR_HEAP_SIZE",
			   (unsigned long long)st->heap->size, st->n_pes);
		return ret;
	}
	if (st->cuda) /* memory of the host comes zeroed */
		ret = gdri_heap_zero(st->heap, st->heap->base + GDRI_CTL_SIZE, st->teams->bytes, GDRI_COPY_MS);
	if (ret)
		return ret;
	st->alloc = gdri_suballoc_create(st->heap->size - GDRI_CTL_SIZE - st->teams->bytes,
					 GDRI_CTL_SIZE + st->teams->bytes);
	if (!st->alloc)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	return 0;
}

static void down_heap(struct gdri_state *st)
{
	gdri_symmetric_leave_all(&st->symmetric);
	gdri_suballoc_destroy(st->window);
	st->window = NULL;
	gdri_suballoc_destroy(st->alloc);
	st->alloc = NULL;
	gdri_page_close(st);
	gdri_heap_close(st->heap);
}

static int up_share(struct gdri_state *st)
{
	return gdri_share_open(st->share);
}

static void down_share(struct gdri_state *st)
{
	gdri_share_close(st->share);
}

static int up_all_checked(struct gdri_state *st)
{
	return gdri_agree(st, "link check", NULL, NULL, 0);
}

static int up_all_ready(struct gdri_state *st)
{
	return gdri_agree(st, "init", NULL, NULL, 0);
}

static bool drive_net(void *of, bool spare)
{
	struct gdri_net *net = of;

	return net->ops->drive(net, spare);
}

static int up_drive(struct gdri_state *st)
{
	if (st->any_net && st->net->ops->drive)
		gdri_hd_backoff_drives(drive_net, st->net, st->net->threads);
	return 0;
}

static void down_drive(struct gdri_state *st)
{
	(void)st;
	gdri_hd_backoff_drives(NULL, NULL, 0);
}

enum kind {
	LOCAL,	    /* may fail here only: skipped after a failure, told by the next collective */
	COLLECTIVE, /* same verdict on all PEs; runs after a local failure too */
};

struct step {
	const char *name;
	enum kind kind;
	int (*up)(struct gdri_state *st);
	void (*down)(struct gdri_state *st); /* accepts what `up` left half-built or never began */
};

static const struct step steps[] = {
	{"prefetch", LOCAL, gdri_prefetch_begin, NULL}, /* gdri_state_down ends it first */
	{"bootstrap", COLLECTIVE, up_bootstrap, down_bootstrap},
	{"version", COLLECTIVE, gdri_up_version, NULL},
	{"identity", COLLECTIVE, gdri_up_identity, gdri_down_identity},
	{"host device", LOCAL, up_host_device, NULL}, /* gdri_state_down stops it first */
	{"CUDA", LOCAL, gdri_up_cuda, gdri_down_cuda},
	{"heap", LOCAL, up_heap, down_heap},
	{"share", LOCAL, up_share, down_share},
	{"p2p", COLLECTIVE, gdri_up_p2p, gdri_down_p2p},
	{"reach", COLLECTIVE, gdri_up_reach, NULL},
	{"transport", LOCAL, gdri_up_net, gdri_down_net},
	{"transport ready", COLLECTIVE, gdri_up_net_ready, NULL},
	{"connect", COLLECTIVE, gdri_up_connect, NULL},
	{"waits drive", LOCAL, up_drive, down_drive},
	{"device", LOCAL, gdri_up_device, gdri_down_device},
	{"all connected", COLLECTIVE, gdri_up_world, NULL},
	{"link check out", LOCAL, gdri_up_link_out, NULL},
	{"all checked", COLLECTIVE, up_all_checked, NULL},
	{"link check in", LOCAL, gdri_up_link_in, NULL},
	{"monitor", LOCAL, gdri_up_monitor, gdri_down_monitor},
	{"all ready", COLLECTIVE, up_all_ready, NULL},
};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static int state_execute(struct gdri_state *st)
{
	uint64_t begin = gdri_now_ns();
	int ret = 0;

	for (size_t i = 0; i < N_STEPS && !ret; i++) {
		if (steps[i].kind == COLLECTIVE)
			ret = steps[i].up(st);
		else if (!st->pending)
			st->pending = steps[i].up(st);
		gdri_debug("init: %s: %s, %llu us", steps[i].name,
			   ret || st->pending ? gdr_strerror(ret ? ret : st->pending) : "done",
			   (unsigned long long)((gdri_now_ns() - begin) / 1000));
	}
	return ret;
}

/* In the range of the option: beyond it, there is no room for what the library keeps in a heap. */
static int take_heap_size(struct gdri_state *st, size_t size)
{
	char text[24], why[160];

	snprintf(text, sizeof(text), "%zu", size);
	if (!gdri_option_set(&st->opt, "HEAP_SIZE", text, why, sizeof(why)))
		return 0;
	return gdri_fail(-GDR_EOPTION, "gdr_init_attr: heap_size %s is not accepted; it takes %s", text, why);
}

static int take_attr(struct gdri_state *st, const struct gdr_init_attr *attr)
{
	char why[160];

	if (!attr)
		return 0;
	if (attr->size != sizeof(*attr))
		return gdri_fail(-GDR_EINVAL, "gdr_init_attr: size is %zu, this library knows %zu; begin with "
				 "GDR_INIT_ATTR_INITIALIZER, and compile with this library's headers", attr->size,
				 sizeof(*attr));
	st->boot = attr->bootstrap;
	st->attr = attr;
	if (!!attr->bootstrap + !!attr->uniqueid + !!attr->mpi_comm > 1)
		return gdri_fail(-GDR_EINVAL, "gdr_init_attr: bootstrap, uniqueid and mpi_comm exclude each other");
	if (attr->heap_size && take_heap_size(st, attr->heap_size))
		return -GDR_EOPTION;
	if (!attr->heap_size && st->nvshmem)
		gdri_options_nvshmem_heap(&st->opt, (gdri_units_exist() || st->opt.device == GDRI_DEVICE_CUDA) &&
							    st->opt.heap_kind != GDRI_MEMORY_HOST);
	if (attr->ctx_queues > 255)
		return gdri_fail(-GDR_EINVAL, "gdr_init_attr: %u queues to each PE for contexts; at most 255",
				 attr->ctx_queues);
	if (attr->ctx_queues)
		st->opt.ctx_queues = attr->ctx_queues;
	if (attr->transports &&
	    gdri_option_set(&st->opt, "TRANSPORTS", attr->transports, why, sizeof(why)))
		return gdri_fail(-GDR_EOPTION, "gdr_init_attr: transports \"%.60s\" is not accepted; it takes %s",
				 attr->transports, why);
	return 0;
}

/* Own failure so far does not end it: the others must hear of it. */
static void take_options(struct gdri_state *st, const struct gdr_init_attr *attr)
{
	int ret, rc;

	gdri_log_clear_error();
	gdri_log_counts(0, 1);
	ret = gdri_options_read(&st->opt, NULL);
	gdri_log_set_level((enum gdri_log_level)st->opt.log);
	rc = take_attr(st, attr);
	ret = ret ? ret : rc;
	if (!ret)
		ret = gdri_options_check(&st->opt);
	if (!ret)
		ret = gdri_coll_load(st->coll, st->opt.coll, st->opt.coll_table);
	st->pending = ret;
	gdri_limit_begin(st, true);
}

static void state_announce(const struct gdri_state *st)
{
	int i, mapped = 0;

	for (i = 0; i < st->n_pes; i++)
		mapped += st->peers[i].base != NULL;
	gdri_info("gdr %s: PE %d of %d on %d node%s, heap %llu bytes, %d by p2p, %d by %s%s%s",
		  GDR_VERSION_STRING, st->pe, st->n_pes, st->n_nodes, st->n_nodes == 1 ? "" : "s",
		  (unsigned long long)st->heap->size, mapped, st->n_pes - mapped,
		  st->net ? st->net->name : gdri_net_word(&st->opt), st->net ? ", " : "", st->net ? st->net->text : "");
}

/* The state and what it points to that lives as long: one allocation, which begins with the state. */
static struct gdri_state *make_state(void)
{
	struct {
		struct gdri_state st;
		struct gdri_coll_rules coll;
		struct gdri_ctxs ctxs;
		struct gdri_prefetch prefetch;
		struct gdri_heap heap, page;
		struct gdri_modules modules;
		struct gdri_mr_keys keys;
		struct gdri_outsides outside;
		struct gdri_share share;
		struct gdri_teams teams;
	} *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->st.coll = &all->coll;
	all->st.ctxs = &all->ctxs;
	all->st.prefetch = &all->prefetch;
	all->st.heap = &all->heap;
	all->st.page = &all->page;
	all->st.modules = &all->modules;
	all->st.keys = &all->keys;
	all->st.outside = &all->outside;
	all->st.share = &all->share;
	all->st.teams = &all->teams;
	return &all->st;
}

int gdri_state_up(const struct gdr_init_attr *attr, int abi_version)
{
	static pthread_once_t first = PTHREAD_ONCE_INIT;
	struct gdri_state *st = make_state();
	int ret;

	gdri_descriptors_fill();
	pthread_once(&first, state_once);
	if (!st)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	st->share->listener = -1;
	pthread_mutex_init(&st->lock, NULL);
	pthread_mutex_init(&st->local_lock, NULL);
	pthread_mutex_init(&st->symmetric_lock, NULL);
	pthread_mutex_init(&st->fault_lock, NULL);
	pthread_mutex_init(&st->staging_lock, NULL);
	st->nvshmem = abi_version & GDRI_INIT_NVSHMEM;
	take_options(st, attr);
	if (st->opt.nvtx > 1 && !gdri_range_built())
		gdri_warn("GDR_NVTX: the library was built without NVTX's header: there are no ranges");
	GDRI_RANGE(st, GDRI_RANGE_INIT, "gdr_init");
	abi_version &= ~GDRI_INIT_NVSHMEM;
	if (abi_version != GDR_ABI_VERSION)
		st->pending = gdri_fail(-GDR_EVERSION,
					"the program was compiled with headers of ABI %d, the library has ABI %d (gdr "
					"%s): compile it again",
					abi_version, GDR_ABI_VERSION, GDR_VERSION_STRING);
	ret = state_execute(st);
	st->attr = NULL;
	if (ret) {
		gdri_state_down(st, ret);
		return ret;
	}
	state_announce(st);
	/* release: pairs with the acquire in gdri_state_get */
	__atomic_store_n(&current, st, __ATOMIC_RELEASE);
	return 0;
}

/* Kernels that do not end although every wait was told to, threads that were in a wait, or a transport's in a call that
 * does not return: their memory must outlive us. A debugger finds it here, and leak checkers that nothing is lost. */
static void state_abandon(struct gdri_state *st)
{
	static struct gdri_state *left;

	if (st->kernels_run) {
		gdri_error("gdr_finalize: kernels still run: heap and queues of this PE are left to them");
		gdri_hd_leave(); /* they are no job's from now on */
	}
	st->left = left;
	left = st;
	gdri_down_monitor(st);
	down_bootstrap(st);
}

static bool state_ends_net(struct gdri_state *st)
{
	return !st->net || !st->net->ops->stop || st->net->ops->stop(st->net);
}

/* A wait that a host thread published; NULL: none. */
static const struct gdri_wait *wait_left(const struct gdri_state *st)
{
	const struct gdri_wait *w = gdri_host_dev(st)->ctl->waits;

	for (int i = 1; i < GDRI_WAIT_RECORDS; i++) /* acquire: pairs with the release in gdri_wait_publish */
		if (__atomic_load_n(&w[i].state, __ATOMIC_ACQUIRE) != GDRI_WAIT_IDLE)
			return &w[i];
	return NULL;
}

/* Whether a host thread is still in a wait, against the contract: it ends now. Nobody begins one any more. A wait is
 * published by its thread once that has run for GDRI_LIMIT_FIRST_NS in it; an earlier one is not seen. Where the thread
 * is behind its wait is not known: what it may look at stays. */
static bool state_end_waits(struct gdri_state *st)
{
	uint64_t deadline = gdri_deadline_ns(WAITS_END_MS);
	const struct gdri_wait *w;

	usleep(2 * GDRI_LIMIT_FIRST_NS / 1000);
	w = wait_left(st);
	if (!w)
		return false;
	/* relaxed: behind the acquire of its state */
	gdri_error("gdr_finalize: a thread of this PE is still in a wait (%s), or was cancelled in one: it ends with "
		   "-GDR_EABORTED, and heap and queues are left to it; end such threads before",
		   gdri_op_name(__atomic_load_n(&w->op, __ATOMIC_RELAXED)));
	gdri_devstate_abort(st);
	while (wait_left(st) && gdri_now_ns() < deadline)
		usleep(1000);
	return true;
}

int gdri_end_kernels(struct gdri_state *st, int limit_ms)
{
	int ret = gdri_hd_shutdown((unsigned int)limit_ms);

	if (!ret && st->cuda)
		ret = gdri_cuda_wait_kernels(st->cuda, limit_ms);
	if (ret == -GDR_ETIMEOUT && !st->kernels_late) {
		st->kernels_late = true;
		gdri_hd_tell_runs((unsigned int)limit_ms);
	}
	return ret;
}

/* Peers may still read and write here until all have come. One that leaves after an error says
 * so, and is not waited for. */
static int state_part(struct gdri_state *st, int status)
{
	int ret, told;

	if (status)
		gdri_fault_leave(st);
	gdri_join_finalize(st, status);
	gdri_absent_look(st); /* who is gone is told nothing more */
	if (status) {
		gdri_host_barrier_leave(st);
		return 0;
	}
	gdri_host_dev(st)->timeout_ns = (uint64_t)gdri_left_ms(st->deadline_ns) * 1000000u;
	st->finalize_ns = gdri_now_ns(); /* the monitor reads it behind the acquire of the wait's record */
	gdri_call_begin(st, "gdr_finalize");
	ret = gdri_host_barrier(st, 0);
	if (ret < 0)
		gdri_monitor_say(); /* while the text finds the state */
	if (ret == GDRI_HOST_BARRIER_DIFFER)
		ret = gdri_fail(-GDR_EMISMATCH, "gdr_finalize: other PEs are in a collective call, which ends without "
				"this PE; all PEs make the same calls");
	if (ret) {
		gdri_join_gone(st);
	} else {
		gdri_outside_close(st); /* before the exchange, behind which the owners may free */
		gdri_host_barrier_settle(st, GDRI_SETTLE_MS); /* while the others are there to answer */
		gdri_agree(st, "finalize", NULL, NULL, 0);
	}
	told = gdri_fault_heard_of(st);
	return told ? told : ret;
}

int gdri_state_down(struct gdri_state *st, int status)
{
	bool up = gdri_state_get() == st, waits;
	int limit, told = 0;

	gdri_prefetch_end(st);
	if (up) /* else this is the end of an init, within its limit */
		gdri_limit_begin(st, true);
	if (status && st->dev)
		gdri_devstate_abort(st);
	limit = status ? 2 * KERNELS_END_MS : gdri_left_ms(st->deadline_ns);
	st->kernels_run = gdri_end_kernels(st, limit) == -GDR_ETIMEOUT;
	if (st->kernels_run && !status) { /* their waits have not been told to end */
		if (st->dev)
			gdri_devstate_abort(st);
		st->kernels_run = gdri_end_kernels(st, KERNELS_END_MS) == -GDR_ETIMEOUT;
	}
	if (up)
		told = state_part(st, st->kernels_run ? -GDR_ETIMEOUT : status);
	/* whoever still calls now breaks the contract; pairs as the store in gdri_state_up */
	__atomic_store_n(&current, NULL, __ATOMIC_RELEASE);
	gdri_devstate_publish(NULL);
	waits = up && !st->kernels_run && state_end_waits(st);
	if (st->kernels_run || waits || !state_ends_net(st)) {
		state_abandon(st);
		gdri_log_counts(0, 1);
		return told || st->kernels_run ? told : -GDR_EABORTED;
	}
	for (size_t i = N_STEPS; i-- > 0;) {
		if (steps[i].down)
			steps[i].down(st);
	}
	gdri_log_counts(0, 1);
	pthread_mutex_destroy(&st->lock);
	pthread_mutex_destroy(&st->local_lock);
	pthread_mutex_destroy(&st->symmetric_lock);
	pthread_mutex_destroy(&st->fault_lock);
	pthread_mutex_destroy(&st->staging_lock);
	gdri_coll_unload(st->coll);
	free(st);
	return told;
}
