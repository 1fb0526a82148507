/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefill to decode: moves the pages of a paged KV cache from the PEs that
 * computed them to those that go on with the requests.
 *
 *	mpirun -n 2 ./kv_transfer [--host] [--stall] [-p bytes] [-r requests] ...
 *
 * The first half of the PEs are prefill, the others decode; each decode PE has
 * one prefill PE, and a ring of slots for its pages. The pages of several
 * requests are under way at once, in turn. Page k goes into slot k modulo the
 * number of slots:
 *  - prefill waits until decode has freed the slot of page k - slots (a signal
 *    a slot: the back-pressure), and puts the page, with a signal;
 *  - decode waits for the signal, reads behind the page whose it is, copies it
 *    to where its own block table says, adds up the checksum on the way, and
 *    frees the slot.
 * Blocks take the pages in turn, so several are on their way even of one ring.
 * Prefill's side runs in a kernel, or (--host) is put on a stream by the host.
 *
 * Compared with what prefill must have computed: the checksum of each page, and
 * at the end each word of decode's cache. */
#define GDR_KERNEL_THREADS 512 /* more registers for each */
#include "sample.h"

#include <sched.h>

/* What stands behind each page. */
struct tail {
	uint64_t request, index, checksum, unused[5];
};

/* Of one prefill and one decode PE. Lies in device memory; the pointers are symmetric. */
struct channel {
	char *source;	   /* prefill: its cache, pages with their tails */
	char *slots;	   /* decode: the ring */
	char *cache;	   /* decode: pages */
	uint64_t *arrived; /* decode: [slots]: 1 + number of the page that is in the slot */
	uint64_t *freed;   /* prefill: [slots]: 1 + number of the page that was taken out of it last */
	uint64_t *asked;   /* prefill: decode wants the pages */
	uint32_t *order;   /* prefill: [pages]: page of `source` that is sent as number k */
	uint32_t *table;   /* decode: [pages of the source]: page of `cache` for each */
	uint64_t *time_ns; /* decode: [0]: asked, [1]: has the first page, [2 + block]: has the last one */
	int *status;	   /* [blocks], of this side */
	uint32_t *reached; /* [blocks]: number of the page */
	uint64_t limit_ns;
	uint32_t pages, n_slots, words, stop; /* words of a page; decode takes no more pages than `stop` */
	uint32_t requests, longest;	      /* pages of a request at most */
	int peer;
};

GDR_BOTH size_t stride(const struct channel *c)
{
	return c->words * sizeof(uint64_t) + sizeof(struct tail);
}

/* Word w of page `index` of a request, computed by prefill PE pe. */
GDR_BOTH uint64_t kv_word(int pe, uint64_t request, uint64_t index, uint64_t w)
{
	return sample_mix(((uint64_t)pe << 52) ^ (request << 40) ^ (index << 24) ^ w);
}

GDR_DEVICE uint64_t block_sum(uint64_t part)
{
	uint64_t *parts = (uint64_t *)gdr_shared() + 1;

	parts[gdr_thread_id()] = part;
	for (unsigned half = gdr_block_size() / 2; half; half /= 2) {
		gdr_sync_block();
		if (gdr_thread_id() < half)
			parts[gdr_thread_id()] += parts[gdr_thread_id() + half];
	}
	gdr_sync_block();
	return parts[0];
}

/* Prefill: the pages, a block each, and their checksums. */
GDR_KERNEL(compute, struct channel, c)
{
	for (uint32_t k = gdr_block_id(); k < c.pages; k += gdr_grid_size()) {
		uint64_t request = c.order[k] / c.longest, index = c.order[k] % c.longest, sum = 0;
		uint64_t *page = (uint64_t *)(c.source + c.order[k] * stride(&c));
		struct tail *tail = (struct tail *)(page + c.words);

		for (uint32_t w = gdr_thread_id(); w < c.words; w += gdr_block_size()) {
			page[w] = kv_word(gdr_my_pe(), request, index, w);
			sum += page[w] * (2 * w + 1);
		}
		sum = block_sum(sum);
		if (gdr_thread_id() == 0) {
			tail->request = request;
			tail->index = index;
			tail->checksum = sum;
		}
	}
}

/* Prefill: waits until page k may be sent; the limit names nobody, the caller knows whom. */
GDR_DEVICE int wait_to_send(const struct channel *c, uint32_t k)
{
	int ret = gdr_uint64_wait_until_for(c->asked, GDR_CMP_NE, 0, c->limit_ns);

	if (ret || k < c->n_slots)
		return ret;
	return gdr_uint64_wait_until_for(&c->freed[k % c->n_slots], GDR_CMP_EQ, k - c->n_slots + 1, c->limit_ns);
}

GDR_KERNEL(send, struct channel, c)
{
	uint32_t k = gdr_block_id();
	int ret = 0;

	for (; k < c.pages; k += gdr_grid_size()) {
		ret = sample_of_first(gdr_thread_id() ? 0 : wait_to_send(&c, k));
		if (ret)
			break;
		ret = gdr_put_signal_nbi_block(c.slots + k % c.n_slots * stride(&c), c.source + c.order[k] * stride(&c),
					       stride(&c), &c.arrived[k % c.n_slots], k + 1, GDR_SIGNAL_SET, c.peer);
		if (ret)
			break;
	}
	if (gdr_thread_id() == 0) {
		c.reached[gdr_block_id()] = k;
		c.status[gdr_block_id()] = ret ? ret : gdr_quiet(); /* what became of the puts */
	}
}

/* Decode: takes page k out of its slot. -GDR_EINVAL: it is not what its tail says. */
GDR_DEVICE int take_page(const struct channel *c, uint32_t k)
{
	const uint64_t *page = (const uint64_t *)(c->slots + k % c->n_slots * stride(c));
	const struct tail *tail = (const struct tail *)(page + c->words);
	uint64_t sum = 0, *own;

	if (tail->request >= c->requests || tail->index >= c->longest)
		return -GDR_EINVAL;
	own = (uint64_t *)c->cache + (size_t)c->table[tail->request * c->longest + tail->index] * c->words;
	for (uint32_t w = gdr_thread_id(); w < c->words; w += gdr_block_size()) {
		uint64_t word = page[w];

		own[w] = word;
		sum += word * (2 * w + 1);
	}
	return block_sum(sum) == tail->checksum ? 0 : -GDR_EINVAL;
}

GDR_KERNEL(receive, struct channel, c)
{
	uint32_t k = gdr_block_id();
	int ret = 0;

	if (gdr_thread_id() == 0 && k == 0) {
		c.time_ns[0] = gdr_clock_ns();
		ret = gdr_signal_set(c.asked, 1, c.peer);
	}
	ret = sample_of_first(ret);
	for (; k < c.stop && !ret; k += gdr_grid_size()) {
		const uint64_t *arrived = &c.arrived[k % c.n_slots];

		ret = sample_of_first(gdr_thread_id() ? 0
				      : gdr_uint64_wait_until_for(arrived, GDR_CMP_EQ, k + 1, c.limit_ns));
		if (!ret)
			ret = take_page(&c, k);
		gdr_sync_block(); /* all have read the slot */
		if (ret)
			break;
		if (gdr_thread_id() == 0) {
			c.time_ns[k ? 2 + gdr_block_id() : 1] = gdr_clock_ns();
			ret = gdr_fence();
			if (!ret)
				ret = gdr_signal_set(&c.freed[k % c.n_slots], k + 1, c.peer);
		}
		ret = sample_of_first(ret);
	}
	if (gdr_thread_id() == 0) {
		c.reached[gdr_block_id()] = k;
		c.status[gdr_block_id()] = ret ? ret : gdr_quiet();
	}
}

/* ---- prefill by the host ---- */

struct host_sender {
	struct channel c; /* order and status are not looked at */
	const uint32_t *order;
	gdr_stream_t stream;
	uint32_t next;
	double since; /* when the last page went */
};

/* 1: a page was sent; 0: its slot is not free yet. */
static int host_step(struct host_sender *s)
{
	const struct channel *c = &s->c;
	uint32_t k = s->next, slot = k % c->n_slots;
	uint64_t seen = 0, want = k < c->n_slots ? 1 : k - c->n_slots + 1;
	int ret = gdr_host_get(&seen, k < c->n_slots ? c->asked : &c->freed[slot], sizeof(seen), gdr_host_my_pe());

	if (!ret && seen != want && (sample_seconds() - s->since) * 1e9 > (double)c->limit_ns)
		return -GDR_ETIMEOUT;
	if (ret || seen != want)
		return ret;
	ret = gdr_put_signal_nbi_on_stream(c->slots + slot * stride(c), c->source + s->order[k] * stride(c), stride(c),
					   &c->arrived[slot], k + 1, GDR_SIGNAL_SET, c->peer, s->stream);
	s->since = sample_seconds();
	s->next++;
	return ret ? ret : 1;
}

/* Serves n channels in turn. */
static int host_send(struct host_sender *s, int n)
{
	int left = n, ret = 0;

	while (left && ret >= 0) {
		int sent = 0;

		left = 0;
		for (int i = 0; i < n && ret >= 0; i++) {
			if (s[i].next == s[i].c.pages)
				continue;
			left++;
			ret = host_step(&s[i]);
			sent |= ret;
		}
		if (!sent)
			sched_yield();
	}
	for (int i = 0; i < n && ret >= 0; i++)
		ret = gdr_stream_sync(s[i].stream);
	return ret < 0 ? ret : gdr_host_quiet();
}

/* ---- who does what ---- */

struct job {
	long bytes, mib, requests, flight, slots, blocks, limit_ms, host, stall;
	int n, prefill, decode; /* PEs of each kind; one alone is both */
	gdr_stream_t stream[3];
	/* of one size of page */
	struct channel c;   /* c.freed, c.asked: of channel 0 */
	uint32_t *order;    /* host copies */
	uint32_t *table;
};

static int decode_pe(const struct job *j, int d)
{
	return j->n == 1 ? 0 : j->prefill + d;
}

/* Decode PEs that this PE sends to: the first, and by how many PEs the next lies behind it. */
static int n_sent_to(const struct job *j)
{
	int me = gdr_host_my_pe(), n = 0;

	for (int d = me; me < j->prefill && d < j->decode; d += j->prefill)
		n++;
	return n;
}

/* Its number among the decode PEs, or -1. */
static int own_decode(const struct job *j)
{
	return j->n == 1 ? 0 : gdr_host_my_pe() < j->prefill ? -1 : gdr_host_my_pe() - j->prefill;
}

/* Channel i of a prefill PE, as the PE `peer` at its other end sees it from here; side: which statuses. */
static struct channel channel_of(const struct job *j, int i, int peer, int side)
{
	struct channel c = j->c;

	c.freed += i * (int)c.n_slots;
	c.asked += i;
	c.status += side * (int)j->blocks;
	c.reached += side * (int)j->blocks;
	c.peer = peer;
	return c;
}

static uint32_t pages_of_request(const struct channel *c, uint32_t request)
{
	return 1 + (uint32_t)(sample_mix(request) % c->longest);
}

/* The pages of `flight` requests in turn; who is done makes room for the next. */
static void plan(struct job *j)
{
	struct channel *c = &j->c;
	uint32_t request[64], index[64], next = 0, n = 0;

	c->pages = 0;
	do {
		while (n < (uint32_t)j->flight && next < c->requests) {
			index[n] = 0;
			request[n++] = next++;
		}
		for (uint32_t i = 0; i < n;) {
			j->order[c->pages++] = request[i] * c->longest + index[i];
			if (++index[i] < pages_of_request(c, request[i])) {
				i++;
				continue;
			}
			request[i] = request[--n];
			index[i] = index[n];
		}
	} while (n || next < c->requests);
	for (uint32_t k = 0; k < c->pages; k++)
		j->table[j->order[k]] = c->pages - 1 - k;
}

static void *symmetric(size_t count, size_t size, int *ret)
{
	void *p = *ret ? NULL : gdr_calloc(count, size);

	*ret = p ? *ret : -GDR_ENOMEM;
	return p;
}

static int set_up(struct job *j, size_t bytes)
{
	struct channel *c = &j->c;
	size_t most, blocks = (size_t)j->blocks;
	int ret = 0;

	memset(c, 0, sizeof(*c));
	c->words = (uint32_t)(bytes / sizeof(uint64_t));
	c->requests = (uint32_t)j->requests;
	c->longest = (uint32_t)(((size_t)j->mib << 20) / bytes / (size_t)j->requests);
	c->longest = c->longest < 2 ? 2 : c->longest > 32 ? 32 : c->longest;
	c->limit_ns = (uint64_t)j->limit_ms * 1000000;
	most = (size_t)c->requests * c->longest;
	j->order = (uint32_t *)calloc(most, sizeof(uint32_t));
	j->table = (uint32_t *)calloc(most, sizeof(uint32_t));
	if (!j->order || !j->table)
		return -GDR_ENOMEM;
	plan(j);
	/* fewer slots than pages, so that slots are used again */
	c->n_slots = (uint32_t)j->slots < c->pages / 4 ? (uint32_t)j->slots : c->pages / 4;
	c->n_slots = c->n_slots ? c->n_slots : 1;
	c->stop = j->stall ? c->pages / 2 : c->pages;
	c->source = (char *)symmetric(most, stride(c), &ret);
	c->slots = (char *)symmetric(c->n_slots, stride(c), &ret);
	c->cache = (char *)symmetric(most, bytes, &ret);
	c->arrived = (uint64_t *)symmetric(c->n_slots, sizeof(uint64_t), &ret);
	c->freed = (uint64_t *)symmetric(2 * c->n_slots, sizeof(uint64_t), &ret);
	c->asked = (uint64_t *)symmetric(2, sizeof(uint64_t), &ret);
	c->order = (uint32_t *)symmetric(most, sizeof(uint32_t), &ret);
	c->table = (uint32_t *)symmetric(most, sizeof(uint32_t), &ret);
	c->time_ns = (uint64_t *)symmetric(2 + blocks, sizeof(uint64_t), &ret);
	c->status = (int *)symmetric(3 * blocks, sizeof(int), &ret);
	c->reached = (uint32_t *)symmetric(3 * blocks, sizeof(uint32_t), &ret);
	if (!ret)
		ret = gdr_memcpy(c->order, j->order, most * sizeof(uint32_t));
	return ret ? ret : gdr_memcpy(c->table, j->table, most * sizeof(uint32_t));
}

static int tear_down(struct job *j)
{
	void *objects[] = {j->c.source, j->c.slots, j->c.cache,	  j->c.arrived, j->c.freed,  j->c.asked,
			   j->c.order,	j->c.table, j->c.time_ns, j->c.status,	j->c.reached};
	int ret = 0;

	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects) && !ret; i++)
		ret = gdr_free(objects[i]);
	free(j->order);
	free(j->table);
	return ret;
}

/* ---- one size of page ---- */

/* The status of one side of a channel; a limit that was reached is told with the name of the PE. */
static int side_status(const struct job *j, const struct channel *c, int sends)
{
	uint32_t k = 0, least = UINT32_MAX;
	int ret = sample_first_status(c->status, (int)j->blocks);

	for (long b = 0; ret == -GDR_ETIMEOUT && b < j->blocks; b++)
		if (!gdr_memcpy(&k, c->reached + b, sizeof(k)) && k < least)
			least = k;
	if (ret == -GDR_ETIMEOUT && sends)
		fprintf(stderr, "PE %d: decode PE %d has not freed slot %u for page %u of %u within %ld ms\n",
			gdr_host_my_pe(), c->peer, least % c->n_slots, least, c->pages, j->limit_ms);
	else if (ret == -GDR_ETIMEOUT)
		fprintf(stderr, "PE %d: prefill PE %d has not sent page %u of %u within %ld ms\n", gdr_host_my_pe(),
			c->peer, least, c->pages, j->limit_ms);
	return ret;
}

static int send_by_host(struct job *j, int n)
{
	struct host_sender s[2];
	int ret;

	memset(s, 0, sizeof(s));
	for (int i = 0; i < n; i++) {
		s[i].c = channel_of(j, i, decode_pe(j, gdr_host_my_pe() + i * j->prefill), i);
		s[i].order = j->order;
		s[i].stream = j->stream[i];
		s[i].since = sample_seconds();
	}
	ret = host_send(s, n);
	for (int i = 0; i < n && ret == -GDR_ETIMEOUT; i++)
		if (s[i].next < s[i].c.pages)
			fprintf(stderr, "PE %d: decode PE %d has not freed slot %u for page %u of %u within %ld ms\n",
				gdr_host_my_pe(), s[i].c.peer, s[i].next % s[i].c.n_slots, s[i].next, s[i].c.pages,
				j->limit_ms);
	return ret;
}

/* Both sides of this PE, at the same time; returns when they have ended. */
static int transfer(struct job *j, unsigned block)
{
	unsigned grid = (unsigned)j->blocks;
	size_t shared = (block + 1) * sizeof(uint64_t);
	int n = n_sent_to(j), d = own_decode(j), ret = 0, status = 0;
	struct channel c[3];

	if (d >= 0 && !ret) {
		c[2] = channel_of(j, d / j->prefill, d % j->prefill, 2);
		ret = gdr_launch(receive, grid, block, shared, j->stream[2], &c[2]);
	}
	for (int i = 0; i < n && !ret && !j->host; i++) {
		c[i] = channel_of(j, i, decode_pe(j, gdr_host_my_pe() + i * j->prefill), i);
		ret = gdr_launch(send, grid, block, shared, j->stream[i], &c[i]);
	}
	if (!ret && n && j->host)
		status = send_by_host(j, n);
	for (int i = 0; i < 3 && !ret; i++)
		ret = gdr_stream_sync(j->stream[i]);
	for (int i = 0; i < n && !ret && !status && !j->host; i++)
		status = side_status(j, &c[i], 1);
	if (!ret && d >= 0 && (!status || status == -GDR_ETIMEOUT)) { /* a wrong page stops the sender, too */
		int taken = side_status(j, &c[2], 0);

		status = status && (!taken || taken == -GDR_ETIMEOUT) ? status : taken;
	}
	return ret ? ret : status;
}

/* Decode: each word of its cache. */
static int check(const struct job *j)
{
	const struct channel *c = &j->c;
	size_t words = (size_t)c->pages * c->words;
	int prefill = own_decode(j) % j->prefill, ret;
	uint64_t *copy = (uint64_t *)malloc(words * sizeof(*copy));

	ret = copy ? gdr_memcpy(copy, c->cache, words * sizeof(*copy)) : -GDR_ENOMEM;
	for (uint32_t k = 0; k < c->pages && !ret; k++) {
		uint64_t request = j->order[k] / c->longest, index = j->order[k] % c->longest;
		const uint64_t *page = copy + (size_t)j->table[j->order[k]] * c->words;

		for (uint32_t w = 0; w < c->words && !ret; w++)
			if (page[w] != kv_word(prefill, request, index, w)) {
				fprintf(stderr, "PE %d: WRONG: word %u of page %u of request %u\n", gdr_host_my_pe(), w,
					(unsigned)index, (unsigned)request);
				ret = -1;
			}
	}
	free(copy);
	return ret;
}

/* PE 0 reads the times of the decode PEs. */
static int report(const struct job *j)
{
	size_t n = 2 + (size_t)j->blocks, bytes = (size_t)j->c.pages * j->c.words * sizeof(uint64_t);
	uint64_t *ns = (uint64_t *)malloc(n * sizeof(*ns)), first = 0, all = 0;
	int ret = ns ? 0 : -GDR_ENOMEM;

	for (int d = 0; d < j->decode && !ret; d++) {
		ret = gdr_host_get(ns, j->c.time_ns, n * sizeof(*ns), decode_pe(j, d));
		first = !ret && ns[1] - ns[0] > first ? ns[1] - ns[0] : first;
		for (size_t b = 1; b < n && !ret; b++)
			all = ns[b] > ns[0] && ns[b] - ns[0] > all ? ns[b] - ns[0] : all;
	}
	if (!ret)
		printf("%9zu %6u %6u %14.1f %12.3f\n", (size_t)j->c.words * sizeof(uint64_t), j->c.pages, j->c.n_slots,
		       (double)first * 1e-3, (double)bytes * j->decode / (double)(all ? all : 1));
	fflush(stdout);
	free(ns);
	return ret;
}

static int run_size(struct job *j, size_t bytes)
{
	unsigned block = sample_is_cuda() ? 512 : 16;
	int ret = set_up(j, bytes);

	if (!ret && gdr_host_my_pe() < j->prefill)
		ret = gdr_launch(compute, (unsigned)j->blocks, block, (block + 1) * sizeof(uint64_t), NULL, &j->c);
	if (!ret)
		ret = gdr_stream_sync(NULL);
	if (!ret)
		ret = gdr_barrier_all();
	if (ret)
		return sample_error("set-up", ret);
	ret = transfer(j, block);
	if (ret != -GDR_ETIMEOUT && ret)
		return sample_error("transfer", ret);
	if (gdr_barrier_all() || ret || j->stall) /* who waited in vain has said for whom */
		return ret ? ret : -GDR_ETIMEOUT;
	if (own_decode(j) >= 0)
		ret = check(j);
	if (!ret && gdr_host_my_pe() == 0)
		ret = report(j);
	return ret ? sample_error("check", ret) : tear_down(j);
}

static int run(struct job *j)
{
	int ret = 0;

	j->n = gdr_host_n_pes();
	j->prefill = j->n == 1 ? 1 : j->n / 2;
	j->decode = j->n == 1 ? 1 : j->n - j->prefill;
	j->blocks = j->blocks ? j->blocks : sample_is_cuda() ? 16 : 2;
	for (int i = 0; i < 3 && !ret; i++)
		ret = gdr_stream_create(&j->stream[i]);
	if (!ret && gdr_host_my_pe() == 0)
		printf("%9s %6s %6s %14s %12s\n", "page, B", "pages", "slots", "first page, us", "all, GB/s");
	if (j->bytes && !ret)
		ret = run_size(j, (size_t)j->bytes);
	for (size_t bytes = 4096; !j->bytes && bytes <= 2 << 20 && !ret; bytes *= 2)
		ret = run_size(j, bytes);
	for (int i = 0; i < 3 && !ret; i++)
		ret = gdr_stream_destroy(j->stream[i]);
	if (!ret && gdr_host_my_pe() == 0)
		printf("all words of all pages are right\n");
	return ret;
}

int main(int argc, char **argv)
{
	struct job j = {0, 4, 8, 4, 8, 0, 10000, 0, 0, 0, 0, 0, {0, 0, 0}, {0}, 0, 0};
	const struct sample_option options[] = {
		{"-p", "bytes of a page, a multiple of 64; 0: 4 KiB, 8 KiB, ... 2 MiB", 0, 1 << 28, &j.bytes},
		{"-m", "MiB of one size, about", 1, 1 << 16, &j.mib},
		{"-r", "requests", 1, 4000, &j.requests},
		{"-f", "requests in flight", 1, 64, &j.flight},
		{"-q", "slots at most", 1, 4096, &j.slots},
		{"-b", "blocks of each kernel; 0: 16 on GPUs, else 2", 0, 1024, &j.blocks},
		{"-t", "limit of each wait in ms", 1, 1000000, &j.limit_ms},
		{"--host", "the host of prefill sends", 0, 0, &j.host},
		{"--stall", "decode stops half-way: prefill says so, status 1", 0, 0, &j.stall},
	};
	int ret = sample_options(argc, argv, options, (int)(sizeof(options) / sizeof(*options)));

	if (ret)
		return ret - 1;
	if (j.bytes % 64) {
		fprintf(stderr, "-p takes a multiple of 64, and not %ld\n", j.bytes);
		return 2;
	}
	if (sample_begin())
		return 1;
	ret = run(&j);
	return sample_end(ret);
}
