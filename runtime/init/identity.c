// SPDX-License-Identifier: BSD-3-Clause
/* Who the PEs are: first versions, in a record that never changes, then what
 * must be equal on all PEs and what tells which of them share a node. */
#define _GNU_SOURCE /* gethostname under C11 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/boot.h"
#include "runtime/core/agree.h"
#include "runtime/core/descriptors.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"
#include "runtime/core/parse.h"
#include "runtime/core/state.h"
#include "runtime/cuda/units.h"
#include "runtime/hostdev/hostdev.h"
#include "runtime/net/queues.h"
#include "runtime/team/coll.h"

#define OWN_VERSION (GDR_VERSION_MAJOR * 10000 + GDR_VERSION_MINOR * 100 + GDR_VERSION_PATCH)

#define HELLO_MAGIC 0x4f4c4c4548524447ull /* "GDRHELLO" */

/* Never changes its layout, in whatever version, and is exchanged before anything else. */
struct hello {
	uint64_t magic;
	uint32_t abi, version;
	uint64_t rsvd[2];
};
GDR_STATIC_ASSERT(sizeof(struct hello) == 32, "hello");

struct identity {
	char launcher_host[GDR_HOSTNAME_MAX];
	char own_host[64];
	char boot_id[40];
	uint64_t heap_size, heap_max, heap_chunk;
	uint32_t transports, qps_per_pe, max_pes, cuda, ctx_queues, rsvd;
	uint64_t coll_slot, coll; /* coll: a hash */
	uint32_t teams, heap_kind, coll_blocks, rsvd2;
	uint64_t cores; /* which ones the PE may use */
};

GDR_STATIC_ASSERT(GDRI_BOOT_MAX_PES == GDRI_MAX_PES, "limits of bootstrap and library");

static int differing_version(const struct gdri_state *st, const struct hello *all)
{
	for (int i = 1; i < st->n_pes; i++) {
		if (all[i].magic == all[0].magic && all[i].abi == all[0].abi &&
		    all[i].version == all[0].version)
			continue;
		return gdri_fail(-GDR_EVERSION,
				 "PE 0 has gdr %u.%u.%u (ABI %u), PE %d has %u.%u.%u (ABI %u): start all PEs with the "
				 "same library",
				 all[0].version / 10000, all[0].version / 100 % 100, all[0].version % 100, all[0].abi,
				 i, all[i].version / 10000, all[i].version / 100 % 100, all[i].version % 100,
				 all[i].abi);
	}
	return 0;
}

int gdri_up_version(struct gdri_state *st)
{
	char bytes[GDRI_SIZE_TEXT];
	struct hello mine = {.magic = HELLO_MAGIC, .abi = GDR_ABI_VERSION, .version = OWN_VERSION};
	struct hello *all;
	int ret;

	if (st->n_pes > (int)GDRI_MAX_PES) {
		gdri_size_text(gdri_net_queue_bytes(&st->opt, st->n_pes), bytes);
		return gdri_fail(-GDR_ENOTSUP,
				 "the job has %d PEs, gdr supports %u: queues to all of them would take %s of locked "
				 "memory on every PE",
				 st->n_pes, GDRI_MAX_PES, bytes);
	}
	all = calloc((size_t)st->n_pes, sizeof(*all));
	if (!all)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	ret = gdri_agree(st, "init", &mine, all, sizeof(mine));
	if (!ret)
		ret = differing_version(st, all);
	free(all);
	return ret;
}

static void read_boot_id(char *buf, size_t room)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	memset(buf, 0, room);
	if (fd >= 0) {
		n = read(fd, buf, room - 1);
		close(fd);
	}
	if (n <= 0) /* equal on all that cannot read it: the names decide then */
		memset(buf, 0, room);
}

static void fill_identity(const struct gdri_state *st, struct identity *id)
{
	memset(id, 0, sizeof(*id));
	snprintf(id->launcher_host, sizeof(id->launcher_host), "%s", st->boot->hostname);
	if (gethostname(id->own_host, sizeof(id->own_host) - 1))
		id->own_host[0] = 0;
	read_boot_id(id->boot_id, sizeof(id->boot_id));
	id->heap_size = st->opt.heap_size;
	id->heap_max = st->opt.heap_max;
	id->heap_chunk = st->opt.heap_chunk;
	id->transports = st->opt.transports;
	id->qps_per_pe = st->opt.qps_per_pe;
	id->ctx_queues = st->opt.ctx_queues;
	id->max_pes = st->opt.max_pes;
	id->heap_kind = st->opt.heap_kind == GDRI_MEMORY_HOST;
	id->cuda = gdri_units_exist();
	id->teams = st->opt.teams;
	id->coll_slot = st->opt.coll_slot;
	id->coll_blocks = st->opt.coll_blocks;
	id->coll = gdri_coll_hash(st->coll);
	id->cores = gdri_hd_backoff_cores();
}

/* What all PEs set alike, by the name of the option. */
static const struct {
	const char *option;
	size_t at, len;
} alike[] = {
#define ALIKE(NAME, field) {#NAME, offsetof(struct identity, field), sizeof(((struct identity *)0)->field)}
	ALIKE(HEAP_SIZE, heap_size),	 ALIKE(HEAP_MAX, heap_max),	  ALIKE(HEAP_CHUNK, heap_chunk),
	ALIKE(TRANSPORTS, transports),	 ALIKE(QPS_PER_PE, qps_per_pe),	  ALIKE(CTX_QUEUES, ctx_queues),
	ALIKE(MAX_PES, max_pes),	 ALIKE(TEAMS, teams),		  ALIKE(COLL_SLOT, coll_slot),
	ALIKE(COLL_BLOCKS, coll_blocks),
#undef ALIKE
};

static int identity_check_options(const struct identity *first, const struct identity *other, int pe)
{
	char values[2][40];

	for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
		const char *a = (const char *)first + alike[i].at, *b = (const char *)other + alike[i].at;

		if (!memcmp(a, b, alike[i].len))
			continue;
		gdri_option_text(alike[i].option, a, values[0], sizeof(values[0]));
		gdri_option_text(alike[i].option, b, values[1], sizeof(values[1]));
		return gdri_fail(-GDR_EMISMATCH, "GDR_%s is %s on PE 0 and %s on PE %d: set it equally on all PEs",
				 alike[i].option, values[0], values[1], pe);
	}
	if (first->coll == other->coll)
		return 0;
	return gdri_fail(-GDR_EMISMATCH,
			 "PE 0 and PE %d choose other algorithms for collectives: set GDR_COLL equally on all PEs, and "
			 "give them one GDR_COLL_TABLE",
			 pe);
}

static int check_equal(const struct gdri_state *st, const struct identity *all)
{
	int i, ret = 0;

	for (i = 1; i < st->n_pes && !ret; i++) {
		if (all[i].cuda != all[0].cuda)
			return gdri_fail(-GDR_EMISMATCH,
					 "PE %d has CUDA kernels, PE %d has not: the PEs of a job use the same kind of "
					 "device",
					 all[0].cuda ? 0 : i, all[0].cuda ? i : 0);
		if (all[i].heap_kind != all[0].heap_kind)
			return gdri_fail(-GDR_EMISMATCH,
					 "GDR_HEAP_KIND is host on PE %d but not on PE %d: set it equally on all PEs",
					 all[0].heap_kind ? 0 : i, all[0].heap_kind ? i : 0);
		ret = identity_check_options(&all[0], &all[i], i);
	}
	return ret;
}

static bool same_node(const struct identity *a, const struct identity *b)
{
	return !memcmp(a->launcher_host, b->launcher_host, sizeof(a->launcher_host)) &&
	       !memcmp(a->own_host, b->own_host, sizeof(a->own_host)) &&
	       !memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
}

static void map_nodes(struct gdri_state *st, const struct identity *all)
{
	int i, j, here = 0;

	for (i = 0; i < st->n_pes; i++) {
		st->same_node[i] = same_node(&all[i], &all[st->pe]);
		for (j = 0; j < i && !same_node(&all[i], &all[j]); j++)
			;
		st->node[i] = j;
		st->n_nodes += j == i; /* the first of its node */
		here += st->same_node[i] && all[i].cores == all[st->pe].cores;
	}
	gdri_hd_backoff_pes(here);
}

int gdri_up_identity(struct gdri_state *st)
{
	struct identity mine, *all = calloc((size_t)st->n_pes, sizeof(*all));
	int ret;

	st->same_node = calloc((size_t)st->n_pes, sizeof(*st->same_node));
	st->node = calloc((size_t)st->n_pes, sizeof(*st->node));
	if (!all || !st->same_node || !st->node)
		st->pending = gdri_fail(-GDR_ENOMEM, "out of memory");
	fill_identity(st, &mine);
	ret = gdri_agree(st, "init", &mine, all, sizeof(mine));
	if (!ret)
		ret = check_equal(st, all);
	if (!ret)
		map_nodes(st, all);
	free(all);
	return ret;
}

void gdri_down_identity(struct gdri_state *st)
{
	free(st->same_node);
	free(st->node);
	st->same_node = NULL;
	st->node = NULL;
	gdri_hd_backoff_pes(1);
}

int gdri_uniqueid_create(gdr_uniqueid_t *id)
{
	struct gdri_options opt;
	int ret = gdri_options_read(&opt, NULL);

	if (ret)
		return ret;
	gdri_descriptors_fill();
	gdri_log_set_level((enum gdri_log_level)opt.log);
	return gdri_boot_uniqueid_create(id->bytes, opt.uid_interface);
}
