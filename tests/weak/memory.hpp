/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a queue: its words and blocks as objects of Relacy, found by address, what is true of them without
 * delay, and the checks that go by a word. */
#ifndef WEAK_MEMORY_HPP
#define WEAK_MEMORY_HPP

static struct weak_memory {
	struct gdri_qp qp;
	struct gdri_dev dev;
	struct gdri_cqe cq[WEAK_CQES];
	uint64_t used, db;
	uint32_t dbrec, abort;
	struct gdri_error errors[GDRI_MAX_ERRORS];
	alignas(64) uint8_t sq[WEAK_DEPTH * GDRI_WQE_BLOCK];
} weak_mem;

enum weak_words {
	W_RSVD, W_ROOM, W_GATE, W_READY, W_MARKS, W_DONE, W_CQ_CI, W_ERR, W_ERR_REC, W_LIMIT, W_FENCED,
	W_LOOKER, W_FENCE_SEQ, W_FENCE_DONE, W_DB, W_DBREC, W_STATE, W_TAIL, W_SYNDROME = W_TAIL + WEAK_CQES,
	W_WORDS = W_SYNDROME + WEAK_CQES
};
static unsigned char weak_map[sizeof(weak_mem) / 4]; /* 1 + enum weak_words; 0: memory */

static void weak_map_word(const void *p, int word)
{
	weak_map[((const char *)p - (const char *)&weak_mem) / 4] = (unsigned char)(1 + word);
}

static void weak_map_words(void)
{
	struct gdri_qp *qp = &weak_mem.qp;
	const void *const at[] = {&qp->rsvd, &qp->room, &qp->gate, &qp->ready, &qp->marks, &qp->done, &qp->cq_ci,
				  &qp->err, &qp->err_rec, &qp->limit, &qp->fenced, &qp->looker,
				  &weak_mem.dev.fence_seq, &weak_mem.dev.fence_done, &weak_mem.db, &weak_mem.dbrec, &weak_mem.errors[0].state};
	int i;

	for (i = 0; i < W_TAIL; i++)
		weak_map_word(at[i], i);
	for (i = 0; i < WEAK_CQES; i++) {
		weak_map_word(&weak_mem.cq[i].tail, W_TAIL + i);
		weak_map_word((const char *)&weak_mem.cq[i] + 52, W_SYNDROME + i);
	}
}

/* What is not of the protocol, and known without delay: the NIC's progress, what each block is. */
struct weak_block {
	int blocks, last, fm; /* of the WQE that begins here; whether a completion comes of it */
};

struct weak_truth {
	uint64_t taken, executed, failed, next[WEAK_DEPTH], at[WEAK_DEPTH];
	struct weak_block block[WEAK_BLOCKS];
	int posted[WEAK_POSTERS][WEAK_BLOCKS], n_posted[WEAK_POSTERS];
	int leaving; /* posters that are through */
	/* of fences: what each thread read last before it reserved; the last block of each; of each number the
	 * thread and how many blocks it had posted before; of each mark the block with the bit */
	uint64_t seq[WEAK_THREADS], fenced[WEAK_THREADS], last[WEAK_THREADS];
	struct {
		int thread, n_posted;
	} fence[WEAK_BLOCKS];
	uint64_t marker[WEAK_BLOCKS];
};
static struct weak_truth truth;

struct weak_objects {
	rl::atomic<uint64_t> word[W_WORDS];
	rl::var<int> block[WEAK_BLOCKS][2]; /* control segment, the others */
	rl::var<int> data[WEAK_BLOCKS];	    /* what the NIC brings */
	rl::var<int> reserved[WEAK_BLOCKS]; /* that it was */
	rl::var<int> record;		    /* of the error */
};
static struct weak_objects *obj;

rl::atomic<uint64_t> *weak_word(const void *p)
{
	uint64_t at = (uint64_t)((const char *)p - (const char *)&weak_mem);

	if (at >= sizeof(weak_mem) || !weak_map[at / 4])
		return NULL;
	return &obj->word[weak_map[at / 4] - 1];
}

/* Which of the words. */
static int weak_is(const rl::atomic<uint64_t> *word, int which)
{
	return word == &obj->word[which];
}

/* The write of blocks depends on the leave that was taken, and on the index: C11 orders no store by a branch, so where
 * races of reuse are looked for these two are acquires, and rsvd, to which is added behind the leave, a release. */
static rl::memory_order weak_rmw_order(const rl::atomic<uint64_t> *word, const char *func)
{
	if (!scen->reuse)
		return rl::mo_relaxed;
	if (weak_is(word, W_RSVD))
		return rl::mo_acq_rel;
	return weak_is(word, W_ROOM) && !strcmp(func, "gdri_sq_take") ? rl::mo_acquire : rl::mo_relaxed;
}

/* The caller reserves: behind what its fence bit is for, or behind the block that has it for the caller. */
static void weak_fence_kept(void)
{
	unsigned me = rl::thread_index();
	uint64_t seq = truth.seq[me], f;
	int i;

	if (seq == truth.fenced[me]) {
		if (seq)
			(void)obj->reserved[truth.marker[seq]]($).load();
		return;
	}
	for (f = 1; f <= seq; f++)
		for (i = 0; i < truth.fence[f].n_posted; i++)
			(void)obj->reserved[truth.posted[truth.fence[f].thread][i]]($).load();
}

static uint64_t weak_add(rl::atomic<uint64_t> *word, uint64_t v, rl::memory_order order)
{
	unsigned me = rl::thread_index();
	uint64_t was;

	if (scen->fences && weak_is(word, W_RSVD))
		weak_fence_kept();
	was = word->fetch_add(v, order, $);
	if (weak_is(word, W_RSVD)) {
		truth.last[me] = was - WEAK_START;
		obj->reserved[was - WEAK_START]($) = 1;
	}
	if (weak_is(word, W_FENCE_SEQ)) {
		truth.fence[was + 1].thread = (int)me;
		truth.fence[was + 1].n_posted = truth.n_posted[me];
	}
	return was;
}

uint64_t weak_rmw(rl::atomic<uint64_t> *word, enum weak_op op, uint64_t v, const char *func)
{
	rl::memory_order order = weak_rmw_order(word, func);

	switch (op) {
	case WEAK_ADD:
		return weak_add(word, v, order);
	case WEAK_OR:
		return word->fetch_or(v, order, $);
	default:
		return word->fetch_and(v, order, $);
	}
}

/* One step to the others, and a store also where it changes nothing. */
void weak_max(rl::atomic<uint64_t> *word, uint64_t v)
{
	uint64_t was = word->load(rl::mo_relaxed, $);

	if (weak_is(word, W_DONE))
		RL_ASSERT(v <= truth.executed);
	while (!word->compare_exchange_strong(was, was > v ? was : v, rl::mo_relaxed, $))
		;
	if (weak_is(word, W_FENCED) && was < v)
		truth.marker[v] = truth.last[rl::thread_index()];
}

/* What was read, and is stored, of the words that other checks go by. */
void weak_seen(const rl::atomic<uint64_t> *word, uint64_t v)
{
	if (weak_is(word, W_FENCE_SEQ))
		truth.seq[rl::thread_index()] = v;
	else if (weak_is(word, W_FENCED))
		truth.fenced[rl::thread_index()] = v;
}

void weak_stores(const rl::atomic<uint64_t> *word, uint64_t v)
{
	if (weak_is(word, W_STATE) && v == 1) /* taken, and now filled */
		obj->record($) = 1;
}

int weak_cas(rl::atomic<uint64_t> *word, uint64_t *expected, uint64_t v)
{
	return word->compare_exchange_strong(*expected, v, rl::mo_relaxed, $);
}

/* A block begins with its first segment. */
static uint64_t weak_block_begins(uint64_t slot)
{
	uint64_t index = truth.next[slot];

	truth.next[slot] += (uint64_t)scen->depth;
	RL_ASSERT(index < WEAK_START + (uint64_t)scen->depth || index - (uint64_t)scen->depth < truth.taken);
	return truth.at[slot] = index;
}

static rl::var<int> *weak_block_object(uint64_t index, int part)
{
	uint64_t at = scen->reuse ? index % (uint64_t)scen->depth : index - WEAK_START;

	return &obj->block[at][part];
}

void weak_st_ring(const void *p)
{
	uint64_t at = (uint64_t)((const uint8_t *)p - weak_mem.sq), slot = at / GDRI_WQE_BLOCK;
	uint64_t part = at % GDRI_WQE_BLOCK != 0, index = part ? truth.at[slot] : weak_block_begins(slot);

	(*weak_block_object(index, (int)part))($) = (int)index;
}

#endif
