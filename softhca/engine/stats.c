/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters, and their report when the process ends: SOFTHCA_STATS=1 prints one
 * "softhca: name value" line for each on stderr, SOFTHCA_STATS=PATH appends
 * one line for the process to that file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "softhca/engine/hca.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"

#define COUNTERS(X)                                                                                \
	X(wqes) X(wqe_bytes) X(pkts_tx) X(pkts_rx) X(pkts_shm) X(shm_wakes) X(shm_reads) X(shm_mapped)         \
	X(pkts_dropped) X(pkts_forwarded)                                                          \
	X(retransmits) X(ack_timeouts) X(naks_tx) X(naks_rx) X(rnr_tx) X(icrc_errors)              \
	X(msg_parts_dropped) X(qkey_violations) X(pkey_violations) X(ecn_marked)                   \
	X(doorbells_uar) X(doorbells_sweep)                                                        \
	X(cqes) X(error_cqes) X(engine_sleeps) X(engine_rests)                                     \
	X(poll_rounds) X(poll_takeovers)                                                       \
	X(doorbells_trapped) X(doorbells_missed) X(dma_writes) X(dma_submissions)                   \
	X(dma_batches) X(dma_reads) X(dma_bytes_between) X(dma_merged) X(dma_kernel_items) X(dma_kernel_launches)

/* Relaxed: the engine may still count; each value is right by itself. */
static unsigned long long stats_value(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static size_t stats_format(char *out, size_t size, const char *before, const char *after)
{
	size_t n = 0;

#define ONE(name)                                                                                  \
	if (n < size)                                                                              \
		n += (size_t)snprintf(out + n, size - n, "%s" #name " %llu%s", before,             \
				      stats_value(&hca_stats.name), after);
	COUNTERS(ONE)
#undef ONE
	for (unsigned op = 0; op < 256; op++)
		if (n < size && stats_value(&hca_stats.wqes_by_opcode[op]))
			n += (size_t)snprintf(out + n, size - n, "%swqes_opcode_0x%02x %llu%s",
					      before, op,
					      stats_value(&hca_stats.wqes_by_opcode[op]), after);
	return n < size ? n : size - 1;
}

/* One write each, so that processes do not mix. */
static void to_file(const char *path)
{
	char line[8192];
	int fd = real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	size_t n = (size_t)snprintf(line, sizeof(line), "pid %d ", (int)getpid());

	if (fd < 0) {
		hca_warn("SOFTHCA_STATS=%s: %s", path, strerror(errno));
		return;
	}
	n += stats_format(line + n, sizeof(line) - n - 1, "", " ");
	line[n - 1] = '\n';
	if (write(fd, line, n) != (ssize_t)n)
		hca_warn("SOFTHCA_STATS=%s: short write", path);
	real_close(fd);
}

/* Runs in processes that opened the device; a child of fork reports nothing. */
__attribute__((destructor)) static void stats_report(void)
{
	char text[16384];
	const char *where;

	if (!shim_device_opened() || shim_is_forked_child())
		return;
	where = hca_options()->stats;
	if (!where || !strcmp(where, "0"))
		return;
	if (strcmp(where, "1")) {
		to_file(where);
		return;
	}
	if (write(STDERR_FILENO, text, stats_format(text, sizeof(text), "softhca: ", "\n")) < 0) {
		/* stderr is closed */
	}
}
