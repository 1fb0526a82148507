/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table that is spread over the PEs, filled and read by the threads of
 * kernels with remote atomics.
 *
 *	mpirun -n 4 ./hash [-k keys] [-u different] [-s seed]
 *
 * A key belongs to one slot of one PE, or, where other keys sit there, to the
 * next free one of that PE. To insert a key, a thread of any PE
 *  - claims a slot: compare_swap of the slot's key, from EMPTY to the own one;
 *  - counts: fetch_add of the slot's counter, whose old value is its ticket.
 * No slot is locked, and no thread of the slot's PE takes part. Look-ups get
 * key and counter together.
 *
 * The result must be what one thread finds with a table of its own: which keys
 * are there, how often, and that the tickets of a key are 0, 1, 2, ..., each
 * drawn once. */
#include "sample.h"

#define EMPTY 0

struct slot {
	uint64_t key, count;
};

/* Lies in device memory; the pointers are symmetric. */
struct table {
	struct slot *slots;
	uint64_t n_slots;   /* of each PE */
	uint64_t *tickets;  /* [n_keys]: of the keys that this PE inserted */
	struct slot *found; /* [n_keys]: what look-ups brought, count 0: there is no such key */
	int *status;	    /* [threads of the grid] */
	uint64_t n_keys, different, seed;
};

/* Key i of those that PE pe inserts. The lesser numbers come more often. */
GDR_BOTH uint64_t drawn_key(const struct table *t, int pe, uint64_t i)
{
	uint64_t x = sample_mix(t->seed ^ sample_mix((uint64_t)pe << 32 | i));
	uint64_t a = (x & 0xffffffff) % t->different, b = (x >> 32) % t->different;

	return sample_mix(a < b ? a : b) | 1; /* not EMPTY */
}

/* Key i of those that PE pe looks up: every other one is not there. */
GDR_BOTH uint64_t wanted_key(const struct table *t, int pe, uint64_t i)
{
	return drawn_key(t, pe + 1, i) - (i & 1); /* keys are odd */
}

GDR_BOTH int home_pe(uint64_t key, int n_pes)
{
	return (int)(sample_mix(key) % (uint64_t)n_pes);
}

GDR_BOTH uint64_t home_slot(const struct table *t, uint64_t key)
{
	return sample_mix(~key) % t->n_slots;
}

/* Counts the key; *ticket is how often it had been counted. */
GDR_DEVICE int insert(const struct table *t, uint64_t key, uint64_t *ticket)
{
	int pe = home_pe(key, gdr_n_pes());
	uint64_t at = home_slot(t, key);

	for (uint64_t probe = 0; probe < t->n_slots; probe++, at = (at + 1) % t->n_slots) {
		uint64_t old = gdr_uint64_atomic_compare_swap(&t->slots[at].key, EMPTY, key, pe);

		if (old != EMPTY && old != key)
			continue;
		*ticket = gdr_uint64_atomic_fetch_add(&t->slots[at].count, 1, pe);
		return gdr_status(); /* atomics return values: what failed stands here */
	}
	return -GDR_ENOMEM; /* all slots of the PE hold other keys */
}

/* Brings the key's slot to `found`, or an empty one. */
GDR_DEVICE int look_up(const struct table *t, uint64_t key, struct slot *found)
{
	int pe = home_pe(key, gdr_n_pes()), ret;
	uint64_t at = home_slot(t, key);

	for (uint64_t probe = 0; probe < t->n_slots; probe++, at = (at + 1) % t->n_slots) {
		ret = gdr_get(found, &t->slots[at], sizeof(*found), pe);
		if (ret || found->key == key || found->key == EMPTY)
			return ret;
	}
	found->count = 0;
	return 0;
}

GDR_KERNEL(insert_all, struct table, t)
{
	unsigned me = gdr_block_id() * gdr_block_size() + gdr_thread_id();
	int ret = 0;

	for (uint64_t i = me; i < t.n_keys && !ret; i += gdr_grid_size() * gdr_block_size())
		ret = insert(&t, drawn_key(&t, gdr_my_pe(), i), &t.tickets[i]);
	t.status[me] = ret;
}

GDR_KERNEL(look_up_all, struct table, t)
{
	unsigned me = gdr_block_id() * gdr_block_size() + gdr_thread_id();
	int ret = 0;

	for (uint64_t i = me; i < t.n_keys && !ret; i += gdr_grid_size() * gdr_block_size())
		ret = look_up(&t, wanted_key(&t, gdr_my_pe(), i), &t.found[i]);
	t.status[me] = ret;
}

/* ---- the serial table, and the comparison ---- */

/* The slot of the key, or the empty one where it belongs; `at` begins where it is looked for. */
static uint64_t serial_slot(const struct slot *slots, uint64_t n, uint64_t key)
{
	uint64_t at = sample_mix(key ^ 0x5555) % n;

	while (slots[at].key != EMPTY && slots[at].key != key)
		at = (at + 1) % n;
	return at;
}

/* Everything that all PEs insert, inserted by one thread. */
static void fill_serial(struct slot *serial, uint64_t n, const struct table *t)
{
	for (int pe = 0; pe < gdr_host_n_pes(); pe++)
		for (uint64_t i = 0; i < t->n_keys; i++) {
			uint64_t key = drawn_key(t, pe, i), at = serial_slot(serial, n, key);

			serial[at].key = key;
			serial[at].count++;
		}
}

static int wrong(const char *what, uint64_t key, uint64_t is, uint64_t should)
{
	fprintf(stderr, "PE %d: WRONG: %s of key %llx: %llu, not %llu\n", gdr_host_my_pe(), what,
		(unsigned long long)key, (unsigned long long)is, (unsigned long long)should);
	return -1;
}

/* The own part of the table: each key that belongs here, once, with its count, and no other one. */
static int check_slots(const struct table *t, const struct slot *serial, uint64_t n, struct slot *mine)
{
	uint64_t here = 0, should = 0;
	int ret = gdr_memcpy(mine, t->slots, t->n_slots * sizeof(*mine));

	for (uint64_t i = 0; i < n; i++)
		if (serial[i].key != EMPTY && home_pe(serial[i].key, gdr_host_n_pes()) == gdr_host_my_pe())
			should++;
	for (uint64_t i = 0; !ret && i < t->n_slots; i++) {
		uint64_t key = mine[i].key, count;

		if (key == EMPTY)
			continue;
		here++;
		count = serial[serial_slot(serial, n, key)].count;
		for (uint64_t k = home_slot(t, key); k != i; k = (k + 1) % t->n_slots)
			if (mine[k].key == key || mine[k].key == EMPTY)
				return wrong("second slot", key, i, k);
		if (mine[i].count != count)
			return wrong("count", key, mine[i].count, count);
	}
	if (!ret && here != should)
		return wrong("number of keys beside that", EMPTY, here, should);
	return ret;
}

/* The tickets of the keys that belong here, whoever drew them: `seen` has a byte for each occurrence. */
static int check_tickets(const struct table *t, const struct slot *serial, uint64_t n, const uint64_t *first,
			 unsigned char *seen, uint64_t *tickets)
{
	for (int pe = 0; pe < gdr_host_n_pes(); pe++) {
		int ret = gdr_host_get(tickets, t->tickets, t->n_keys * sizeof(*tickets), pe);

		if (ret)
			return ret;
		for (uint64_t i = 0; i < t->n_keys; i++) {
			uint64_t key = drawn_key(t, pe, i), at = serial_slot(serial, n, key);

			if (home_pe(key, gdr_host_n_pes()) != gdr_host_my_pe())
				continue;
			if (tickets[i] >= serial[at].count)
				return wrong("ticket", key, tickets[i], serial[at].count - 1);
			if (seen[first[at] + tickets[i]]++)
				return wrong("ticket drawn twice", key, tickets[i], tickets[i]);
		}
	}
	return 0;
}

static int check_found(const struct table *t, const struct slot *serial, uint64_t n, struct slot *found)
{
	int ret = gdr_memcpy(found, t->found, t->n_keys * sizeof(*found));

	for (uint64_t i = 0; !ret && i < t->n_keys; i++) {
		uint64_t key = wanted_key(t, gdr_host_my_pe(), i);
		uint64_t count = serial[serial_slot(serial, n, key)].count;

		if (found[i].count != count || (count && found[i].key != key))
			return wrong("look-up", key, found[i].count, count);
	}
	return ret;
}

/* Compares with the serial table; *different is the number of keys in it. */
static int check(const struct table *t, uint64_t *different)
{
	uint64_t all = t->n_keys * (uint64_t)gdr_host_n_pes(), n = 2 * all + 1, sum = 0;
	struct slot *serial = (struct slot *)calloc(n, sizeof(*serial));
	struct slot *copy = (struct slot *)malloc((t->n_slots + t->n_keys) * sizeof(*copy));
	uint64_t *first = (uint64_t *)malloc(n * sizeof(*first));
	uint64_t *tickets = (uint64_t *)malloc(t->n_keys * sizeof(*tickets));
	unsigned char *seen = (unsigned char *)calloc(all, 1);
	int ret = serial && copy && first && tickets && seen ? 0 : -GDR_ENOMEM;

	if (!ret)
		fill_serial(serial, n, t);
	*different = 0;
	for (uint64_t i = 0; !ret && i < n; sum += serial[i++].count) {
		first[i] = sum;
		*different += serial[i].key != EMPTY;
	}
	if (!ret)
		ret = check_slots(t, serial, n, copy);
	if (!ret)
		ret = check_tickets(t, serial, n, first, seen, tickets);
	if (!ret)
		ret = check_found(t, serial, n, copy);
	free(serial);
	free(copy);
	free(first);
	free(tickets);
	free(seen);
	return ret;
}

/* ---- host side ---- */

static int set_up(struct table *t, unsigned threads)
{
	t->n_slots = 2 * t->different / (uint64_t)gdr_host_n_pes() + 64;
	t->slots = (struct slot *)gdr_calloc(t->n_slots, sizeof(*t->slots));
	t->tickets = (uint64_t *)gdr_calloc(t->n_keys, sizeof(*t->tickets));
	t->found = (struct slot *)gdr_calloc(t->n_keys, sizeof(*t->found));
	t->status = (int *)gdr_calloc(threads, sizeof(*t->status));
	return t->slots && t->tickets && t->found && t->status ? 0 : -GDR_ENOMEM;
}

/* Runs to its end what was launched, here and on all PEs. */
static int finish(const struct table *t, unsigned threads, int launched)
{
	int ret = launched ? launched : gdr_stream_sync(NULL);

	if (!ret)
		ret = sample_first_status(t->status, (int)threads);
	return ret ? ret : gdr_barrier_all();
}

static int run(struct table *t)
{
	int cuda = sample_is_cuda(), ret;
	unsigned blocks = cuda ? 64 : 2, block = cuda ? 128 : 32, threads = blocks * block;
	double start, inserted, looked_up;
	uint64_t different;

	ret = set_up(t, threads);
	if (ret)
		return sample_error("set-up", ret);
	start = sample_seconds();
	ret = finish(t, threads, gdr_launch(insert_all, blocks, block, 0, NULL, t));
	if (ret)
		return sample_error("inserting", ret);
	inserted = sample_seconds();
	ret = finish(t, threads, gdr_launch(look_up_all, blocks, block, 0, NULL, t));
	if (ret)
		return sample_error("looking up", ret);
	looked_up = sample_seconds();
	ret = check(t, &different);
	if (!ret)
		ret = gdr_barrier_all(); /* no PE reads tickets any more */
	if (ret)
		return sample_error("check", ret);
	if (gdr_host_my_pe() == 0)
		printf("%llu keys, %llu different: %.2f million/s inserted, %.2f million/s looked up\n"
		       "all counts, tickets and look-ups equal those of a serial table\n",
		       (unsigned long long)(t->n_keys * (uint64_t)gdr_host_n_pes()), (unsigned long long)different,
		       1e-6 * (double)t->n_keys * gdr_host_n_pes() / (inserted - start),
		       1e-6 * (double)t->n_keys * gdr_host_n_pes() / (looked_up - inserted));
	return 0;
}

int main(int argc, char **argv)
{
	long keys = 4000, different = 1000, seed = 1;
	const struct sample_option options[] = {
		{"-k", "keys that each PE inserts and looks up", 1, 1 << 24, &keys},
		{"-u", "different keys at most", 1, 1 << 24, &different},
		{"-s", "seed", 0, 1 << 30, &seed},
	};
	int ret = sample_options(argc, argv, options, 3);
	struct table t;

	if (ret)
		return ret - 1;
	if (sample_begin())
		return 1;
	memset(&t, 0, sizeof(t));
	t.n_keys = (uint64_t)keys;
	t.different = (uint64_t)different;
	t.seed = (uint64_t)seed;
	ret = run(&t);
	return sample_end(ret);
}
