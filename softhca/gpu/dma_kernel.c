/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel of softhca's own (SOFTHCA_GPU_KERNEL=1): one warp that stores and reads a few words for the engine, in
 * half the time that a stream takes. The engine writes items into pinned memory, in their order, and
 * the kernel polls for the next one.
 *
 * It must not be in anybody's way. It ends when it has had nothing to do for IDLE_NS, and after LIFE_NS in any
 * case, so who waits for the device waits so much longer; and it is used only while it is known to
 * run: where a program's kernels leave no room on the GPU it runs when they have ended, and the
 * streams do the work meanwhile. When it ends it says which item it would have taken next: that one
 * and those behind it go by the streams. Nothing is under way by both at once.
 *
 * It stores to memory of its own GPU alone: another's is in its reach only where the program has asked for
 * that, and a store out of reach is the end of the program's context. */
#include <stdlib.h>
#include <string.h>

#include "softhca/gpu/dma_impl.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"

enum {
	WORDS = 8,	  /* of a store */
	SLOTS = 64,	  /* mail.slot[], also in the kernel */
	OUT = 32,	  /* items under way */
	WRITES = 4,	  /* items of a submission */
	READS = 4,	  /* at a time */
	READ_WORDS = 128, /* of a read */
	HALVES = 32,	  /* of a slot: one for each lane */
	BLOCKED = 3,	  /* launches in a row that came back when all was over */
};
#define IDLE_NS 100000ull
#define LIFE_NS 2000000ull
#define WANT_NS 50000u /* work that comes so close behind other makes it worth its while */

/* Pinned. What an item says is cut into halves of words; each travels with the lower half of the item's
 * number, in one load of eight bytes, so that nothing has to be known of the order in which the others
 * arrive. */
struct slot {
	uint64_t half[HALVES];
};
enum { /* words of an item: halves 2 * n and 2 * n + 1 */
	ADDR = 0, /* of the GPU */
	INFO = 1, /* words; 0: four bytes; READ */
	TO = 2,	  /* READ: in pinned memory */
	LAST = 3, /* the last word, which is stored behind the others */
	FIRST = 4,
	ITEM_WORDS = FIRST + WORDS - 1,
};
_Static_assert(2 * ITEM_WORDS <= HALVES, "a half for each lane, and some to spare");
#define READ (1ull << 32)

struct mail {
	uint64_t alive, pad0[7]; /* the number with which it began */
	uint64_t done, pad1[7];	 /* of the last item carried out */
	uint64_t quit, pad2[15]; /* of the first one that will not be; 0: it runs */
	struct slot slot[SLOTS];
};
_Static_assert(sizeof(struct slot) == 256 && offsetof(struct mail, slot) == 256, "as the kernel has it");

/* softhca_kernel(mail, number, idle, life), 32 threads. Each lane reads a half of the slot. */
static const char image[] =
	".version 6.4\n.target sm_70\n.address_size 64\n"
	".visible .entry softhca_kernel(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
	".reg .pred p, q, one, first, fetch, some;\n"
	".reg .b32 lane, lo, hi, want, x, y;\n"
	".reg .b64 mail, number, idle, life, begin, last, now, at, v, w, addr, info, to, end, n, i, s, t;\n"
	"ld.param.u64 mail, [a];\nld.param.u64 number, [b];\nld.param.u64 idle, [c];\nld.param.u64 life, [d];\n"
	"mov.u32 lane, %tid.x;\ncvt.u64.u32 s, lane;\nsetp.eq.u32 one, lane, 0;\n"
	"mov.u64 begin, %globaltimer;\nmov.u64 last, begin;\n"
	"@one st.volatile.u64 [mail], number;\n"
	"LOOK:\n"
	"and.b64 at, number, 63;\nshl.b64 at, at, 8;\nadd.u64 at, at, mail;\nshl.b64 t, s, 3;\nadd.u64 at, at, t;\n"
	"ld.volatile.u64 v, [at+256];\nmov.b64 {lo, hi}, v;\n"
	"cvt.u32.u64 want, number;\nmov.u64 now, %globaltimer;\n"
	"setp.eq.u32 p, hi, want;\nvote.sync.all.pred p, p, 0xffffffff;\n@p bra TAKE;\n"
	"sub.u64 t, now, last;\nsetp.gt.u64 p, t, idle;\nsub.u64 t, now, begin;\nsetp.gt.u64 q, t, life;\n"
	"or.pred p, p, q;\nselp.u32 x, 1, 0, p;\nshfl.sync.idx.b32 x, x, 0, 31, 0xffffffff;\n"
	"setp.eq.u32 p, x, 0;\n@p bra LOOK;\n"
	"membar.sys;\n@one st.volatile.u64 [mail+128], number;\nret;\n" /* quit */
	"TAKE:\n"
#define WORD(to, low, high)                                                                        \
	"shfl.sync.idx.b32 x, lo, " low ", 31, 0xffffffff;\n"                                       \
	"shfl.sync.idx.b32 y, lo, " high ", 31, 0xffffffff;\n"                                      \
	"mov.b64 " to ", {x, y};\n"
	WORD("addr", "0", "1") WORD("info", "2", "3") WORD("to", "4", "5") WORD("end", "6", "7")
	/* Lane i gets word FIRST + i, as far as there are any; the others' is not used. */
	"shl.b32 want, lane, 1;\nadd.u32 want, want, 8;\nshfl.sync.idx.b32 x, lo, want, 31, 0xffffffff;\n"
	"add.u32 want, want, 1;\nshfl.sync.idx.b32 y, lo, want, 31, 0xffffffff;\nmov.b64 w, {x, y};\n"
	"and.b64 n, info, 0xffffffff;\nshr.u64 t, info, 32;\nsetp.ne.u64 fetch, t, 0;\n@!fetch bra STORE;\n"
	"mov.u64 i, s;\n"
	"COPY:\n"
	"setp.ge.u64 p, i, n;\n@p bra DONE;\n"
	"shl.b64 t, i, 3;\nadd.u64 at, addr, t;\nld.volatile.u64 w, [at];\nadd.u64 at, to, t;\n"
	"st.volatile.u64 [at], w;\nadd.u64 i, i, 32;\nbra COPY;\n"
	"STORE:\n" /* lanes 0 to n - 2 the first words, then lane 0 the last one */
	"add.u64 t, s, 1;\nsetp.lt.u64 first, t, n;\nsetp.gt.u64 q, n, 1;\n"
	"shl.b64 t, s, 3;\nadd.u64 at, addr, t;\n@first st.volatile.u64 [at], w;\n"
	"bar.warp.sync 0xffffffff;\n@q membar.sys;\nbar.warp.sync 0xffffffff;\n"
	"setp.ne.u64 some, n, 0;\nshl.b64 t, n, 3;\nadd.u64 at, addr, t;\n"
	"and.pred p, one, some;\n@p st.volatile.u64 [at+-8], end;\n"
	"not.pred some, some;\nand.pred p, one, some;\ncvt.u32.u64 x, end;\n@p st.volatile.u32 [addr], x;\n"
	"DONE:\n"
	"bar.warp.sync 0xffffffff;\nmembar.sys;\nbar.warp.sync 0xffffffff;\n@one st.volatile.u64 [mail+64], number;\n"
	"add.u64 number, number, 1;\nmov.u64 last, now;\nbra LOOK;\n}\n";

static struct mail *mail; /* NULL: there is none */
static cu_function function;
static cu_stream stream;
static enum { ENDED, ASKED, RUNS } state;
static int device; /* the one that it runs on */
static unsigned blocked; /* launches in a row */
static uint64_t next = 1; /* number of the next item */
static uint64_t began, quit; /* numbers: it began with, and did not do any more */
static unsigned out; /* items whose end is not known yet */
static uint64_t wanted_at;

static struct { /* the submission under way */
	uint64_t dst[WRITES], src[WRITES], number[WRITES];
	size_t len[WRITES];
	bool end_only[WRITES];
	unsigned n;
} writes;

/* ---- the kernel's life ---- */

/* Work is to come by it for a while, or it is no use: where launches wait for what they launch (a debugger; a
 * variable that the program has set later) each would keep the engine for IDLE_NS. */
static bool came_back(void)
{
	/* Acquire: as in dma_kernel_runs(). */
	blocked = __atomic_load_n(&mail->quit, __ATOMIC_ACQUIRE) ? blocked + 1 : 0;
	if (blocked < BLOCKED)
		return true;
	hca_warn("SOFTHCA_GPU_KERNEL: a launch waits for the end of what it launches; streams do its work");
	return false;
}

static bool dma_kernel_launch(uint64_t life)
{
	uint64_t at = (uintptr_t)mail, idle = IDLE_NS;
	void *args[] = { &at, &next, &idle, &life };

	began = next;
	__atomic_store_n(&mail->quit, 0, __ATOMIC_RELAXED); /* the launch comes behind it */
	__atomic_store_n(&mail->alive, 0, __ATOMIC_RELAXED); /* the launch comes behind it */
	state = ASKED;
	STAT_INC(dma_kernel_launches);
	return !DMA_CALL(launch, "cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL);
}

static bool launches_block(void)
{
	const char *set = getenv("CUDA_LAUNCH_BLOCKING");

	return set && *set && strcmp(set, "0") != 0;
}

/* In the program's thread, before its kernels wait for anything: loading may wait for the device.
 * Nothing is lost where it fails. */
void dma_kernel_start(const struct cuda_api *api)
{
	void *module = NULL, *p = NULL;
	int least = 0, greatest = 0;

	if (!hca_options()->gpu_kernel || !api->launch || !api->module_load || !api->module_function)
		return;
	if (launches_block()) {
		hca_warn("SOFTHCA_GPU_KERNEL: with CUDA_LAUNCH_BLOCKING no kernel can wait for work; "
			 "streams do it");
		return;
	}
	api->priorities(&least, &greatest);
	if (api->ctx_device(&device) || api->module_load(&module, image) ||
	    api->module_function(&function, module, "softhca_kernel") ||
	    api->stream_create(&stream, CU_STREAM_IS_NON_BLOCKING, greatest) ||
	    api->host_alloc(&p, sizeof(*mail), CU_HOST_PORTABLE)) {
		hca_warn("SOFTHCA_GPU_KERNEL: the kernel cannot be loaded; streams do its work");
		return;
	}
	memset(p, 0, sizeof(*mail));
	mail = p;
	dma_gpu.api = api;
	if (dma_kernel_launch(0)) /* what is loaded at the first launch is loaded now */
		api->stream_wait(stream);
	else
		mail = NULL;
	state = ENDED;
}

static bool dma_kernel_runs(void)
{
	if (!mail || state == ENDED)
		return false;
	/* Acquire, both: pair with the kernel's fences; what it did not do it will not do. */
	if (state == ASKED && __atomic_load_n(&mail->alive, __ATOMIC_ACQUIRE) == began)
		state = RUNS;
	quit = __atomic_load_n(&mail->quit, __ATOMIC_ACQUIRE);
	if (quit)
		state = ENDED;
	return state == RUNS;
}

/* There was something for it. */
static void dma_kernel_want(void)
{
	uint64_t now = dp_clock();

	/* While an item of the last one is not settled, none of the next one's numbers may be seen as done. */
	if (state == ENDED && !out && now - wanted_at < WANT_NS && (!dma_kernel_launch(LIFE_NS) || !came_back()))
		mail = NULL;
	wanted_at = now;
}

/* ---- items ---- */

static bool dma_kernel_room(unsigned n)
{
	return out + n <= OUT;
}

static uint64_t dma_kernel_put(uint64_t addr, uint64_t info, uint64_t to, const uint64_t *words, unsigned n)
{
	uint64_t item[HALVES / 2] = { [ADDR] = addr, [INFO] = info, [TO] = to };
	struct slot *s = &mail->slot[next % SLOTS];

	for (unsigned i = 0; i + 1 < n; i++)
		item[FIRST + i] = words[i];
	item[LAST] = n ? words[n - 1] : 0;
	/* Release: behind what the item says is in pinned memory; pairs with the kernel's load of the same half. */
	for (unsigned i = 0; i < HALVES; i++)
		__atomic_store_n(&s->half[i], next << 32 | (uint32_t)(item[i / 2] >> i % 2 * 32),
				 __ATOMIC_RELEASE);
	out++;
	STAT_INC(dma_kernel_items);
	return next++;
}

/* 1: carried out; 0: not yet; -1: it will not be. */
int dma_kernel_item(uint64_t number)
{
	uint64_t done;

	dma_kernel_runs();
	/* Acquire: pairs with the kernel's fence. Behind quit, which tells that it is the last one. */
	done = __atomic_load_n(&mail->done, __ATOMIC_ACQUIRE);
	return done >= number ? 1 : state == ENDED ? -1 : 0;
}

/* The read has ended, or been given to a stream. */
void dma_kernel_read_over(void)
{
	out--;
}

bool dma_kernel_ready(uint64_t reads)
{
	return reads <= READS && dma_kernel_runs() && dma_kernel_room(READS);
}

/* A read; its number for dma_kernel_item(), 0: it goes by a stream. */
uint64_t dma_kernel_read(void *to, cu_ptr from, size_t n)
{
	if (!mail || n > READ_WORDS * 8 || n % 8 || from % 8 || !dma_all_on(device, from, n))
		return 0;
	if (!dma_kernel_runs() || !dma_kernel_room(1)) {
		dma_kernel_want();
		return 0;
	}
	return dma_kernel_put(from, READ | n / 8, (uintptr_t)to, NULL, 0);
}

static bool dma_kernel_fits(const struct dma_queue *q, unsigned i)
{
	size_t n = q->len[i];

	return !q->device[i] && n <= WORDS * 8 &&
	       (n == 4 ? !(q->dst[i] % 4) : !(n % 8) && !(q->dst[i] % 8)) &&
	       dma_all_on(device, q->dst[i], n);
}

static void dma_kernel_store(const struct dma_queue *q, unsigned i)
{
	size_t from = q->end_only[i] ? q->len[i] - 8 : 0, n = q->len[i] - from;
	uint64_t words[WORDS] = { 0 };
	unsigned k = writes.n++;

	memcpy(words, (const uint8_t *)(uintptr_t)q->src[i] + from, n);
	writes.dst[k] = q->dst[i];
	writes.src[k] = q->src[i];
	writes.len[k] = q->len[i];
	writes.end_only[k] = q->end_only[i];
	writes.number[k] = dma_kernel_put(q->dst[i] + from, n / 8, 0, words, n < 8 ? 1 : (unsigned)(n / 8));
}

/* A submission, nothing else being under way. False: it goes by the stream. */
bool dma_kernel_takes(const struct dma_queue *q)
{
	if (!mail || q->n > WRITES)
		return false;
	for (unsigned i = 0; i < q->n; i++)
		if (!dma_kernel_fits(q, i))
			return false;
	if (!dma_kernel_runs() || !dma_kernel_room(q->n)) {
		dma_kernel_want();
		return false;
	}
	writes.n = 0;
	for (unsigned i = 0; i < q->n; i++)
		dma_kernel_store(q, i);
	return true;
}

bool dma_kernel_writes(void)
{
	return writes.n != 0;
}

/* Has it arrived? What the kernel did not do goes by the stream, under the number of the submission. */
bool dma_kernel_written(uint32_t number)
{
	static struct dma_queue rest;
	int last = dma_kernel_item(writes.number[writes.n - 1]);
	cu_ctx before;

	if (!last)
		return false;
	rest.n = 0;
	for (unsigned i = 0; last < 0 && i < writes.n; i++) {
		unsigned k = rest.n;

		if (writes.number[i] < quit)
			continue;
		rest.dst[k] = writes.dst[i];
		rest.src[k] = writes.src[i];
		rest.len[k] = writes.len[i];
		rest.end_only[k] = writes.end_only[i];
		rest.first[k] = true;
		rest.n++;
	}
	out -= writes.n;
	writes.n = 0;
	if (!rest.n)
		return true;
	before = dma_enter();
	dma_hand_over(&rest, number);
	dma_leave(before);
	return false;
}
