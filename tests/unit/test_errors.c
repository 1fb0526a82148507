// SPDX-License-Identifier: BSD-3-Clause
/* Status codes and error records in words. */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr/enums.h>
#include <gdr/status.h>
#include <gdr/impl/coll/reduce_code.h>
#include <gdr/impl/request/request.h>
#include <gdr/impl/wait/fault.h>

#include "runtime/diag/errors.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/mem/suballoc.h"
#include "runtime/net/net.h"

static struct gdri_state *job; /* of gdri_state_get() */

static void codes_are_distinct_and_have_texts(void **state)
{
	static const struct {
		int number;
		const char *name, *text;
	} all[] = {
#define ROW(name, number, text) {number, #name, text},
		GDR_STATUS_LIST(ROW)
#undef ROW
	};
	size_t n = sizeof(all) / sizeof(all[0]), i, j;

	(void)state;
	for (i = 0; i < n; i++) {
		assert_string_equal(gdr_strerror(-all[i].number), all[i].text);
		assert_string_equal(gdr_strerror(all[i].number), all[i].text);
		for (j = 0; j < i; j++) {
			assert_int_not_equal(all[i].number, all[j].number);
			assert_string_not_equal(all[i].text, all[j].text);
		}
	}
	assert_string_equal(gdr_strerror(0), "success");
	assert_string_equal(gdr_strerror(-9999), "unknown status code");
	assert_non_null(gdr_strerror(INT32_MIN));
}

static void every_operation_has_a_name(void **state)
{
	unsigned int op;

	(void)state;
	for (op = GDRI_NONE; op < GDRI_N_OPS; op++)
		assert_string_not_equal(gdri_op_name(op), "unknown operation");
	assert_string_equal(gdri_call_name(GDRI_SIGNAL), "gdr_signal_op");
	assert_string_equal(gdri_op_name(GDRI_N_OPS), "unknown operation");
	assert_string_equal(gdri_op_name(~0u), "unknown operation");
}

/* Requests of host threads have rows of their own: under the name that a record of the call has. */
static void a_request_has_the_name_of_its_records(void **state)
{
	static const struct {
		const char *name;
		unsigned int op;
	} requests[] = {
#define ROW(request, number, prefix, rest, operation) {"gdr_" prefix rest, GDRI_##operation},
		GDRI_REQUESTS(ROW)
#undef ROW
	};
	static const char *const called[] = {
#define ROW(function, number, name, nvshmem) name,
		GDRI_CALLED_AS(ROW)
#undef ROW
	};
	size_t i, j, n = sizeof(called) / sizeof(called[0]);

	(void)state;
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		for (j = 0; j < n && strcmp(requests[i].name, called[j]); j++)
			;
		if (j == n)
			assert_string_equal(requests[i].name, gdri_call_name(requests[i].op));
	}
}

static struct gdri_error cqe_error(void)
{
	struct gdri_error e = {.state = 2, .kind = GDRI_ERROR_CQE, .status = -GDR_EREMOTEACCESS,
			       .op = GDRI_PUT, .peer = 3, .waited_for = -1, .qpn = 0x12a,
			       .wqe_index = 17, .wqe_opcode = GDRI_OP_WRITE, .syndrome = 0x13,
			       .vendor_syndrome = 0x88, .is_cause = 1, .addr = 0x20000, .len = 4096,
			       .time_ns = 5};
	return e;
}

/* Operands as the entry has them, 8 bytes each, or 4 with four. */
static void says_atomic(uint32_t opcode, uint32_t opmod, const uint64_t args[4], bool sink, const char *want)
{
	struct gdri_error e = cqe_error();
	size_t size = opmod == GDRI_OPMOD_ATOMIC_4B ? 4 : 8;
	struct gdr_error out;
	uint64_t v;

	e.op = GDRI_AMO;
	e.wqe_opcode = (uint8_t)opcode;
	e.reason = opmod;
	e.local = sink ? offsetof(struct gdri_ctl, sink) : offsetof(struct gdri_ctl, fetch);
	for (int i = 0; i < 4; i++) {
		v = __builtin_bswap64(size == 4 ? args[i] << 32 : args[i]);
		memcpy(e.file + (size_t)i * size, &v, size);
	}
	gdri_error_describe(&e, &out);
	if (strncmp(out.text, want, strlen(want)) || strncmp(out.text + strlen(want), " to PE 3 failed", 15))
		fail_msg("%s, not %s", out.text, want);
}

static void an_atomic_has_its_name(void **state)
{
	const uint64_t all = ~0ull, some = 0xf0;
	const uint64_t sum[4] = {5, GDRI_REDUCE_CODE(double, GDRI_SUM)};
	const uint64_t most[4] = {5, GDRI_REDUCE_CODE(int32_t, GDRI_MAX)};
	const uint64_t five[4] = {5}, zero[4] = {0}, flip[4] = {5, all};
	const uint64_t swap[4] = {5, 0, all, 0}, cond[4] = {5, 6, all, all};
	const uint64_t and_[4] = {0, 0, some, 0}, or_[4] = {some, 0, some, 0}, half[4] = {5, 6, UINT32_MAX, UINT32_MAX};

	(void)state;
	says_atomic(GDRI_OP_ATOMIC_FA, 0, five, false, "gdr_TYPE_atomic_fetch_add of 8 bytes");
	says_atomic(GDRI_OP_ATOMIC_FA, 0, five, true, "gdr_TYPE_atomic_add of 8 bytes, or a signal,");
	says_atomic(GDRI_OP_ATOMIC_FA, 0, zero, false, "gdr_TYPE_atomic_fetch of 8 bytes");
	says_atomic(GDRI_OP_ATOMIC_CS, 0, five, false, "gdr_TYPE_atomic_compare_swap of 8 bytes");
	says_atomic(GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_8B, swap, false, "gdr_TYPE_atomic_swap of 8 bytes");
	says_atomic(GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_8B, swap, true,
		    "gdr_TYPE_atomic_set of 8 bytes, or a signal,");
	says_atomic(GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_8B, cond, false, "gdr_TYPE_atomic_compare_swap of 8 bytes");
	says_atomic(GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_4B, half, false, "gdr_TYPE_atomic_compare_swap of 4 bytes");
	says_atomic(GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_8B, and_, true, "gdr_TYPE_atomic_and of 8 bytes");
	says_atomic(GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_8B, or_, false, "gdr_TYPE_atomic_fetch_or of 8 bytes");
	says_atomic(GDRI_OP_MASKED_FA, GDRI_OPMOD_ATOMIC_4B, five, true, "gdr_TYPE_atomic_add of 4 bytes");
	says_atomic(GDRI_OP_MASKED_FA, GDRI_OPMOD_ATOMIC_8B, flip, true, "gdr_TYPE_atomic_xor of 8 bytes");
	says_atomic(GDRI_OP_MASKED_FA, GDRI_OPMOD_COMBINE, sum, true, "gdr_double_atomic_add");
	says_atomic(GDRI_OP_MASKED_FA, GDRI_OPMOD_COMBINE, most, false, "gdr_int32_atomic_fetch_max");
	says_atomic(GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_8B, zero, true, "gdr_TYPE_atomic_and of 8 bytes");
}

static void a_completion_is_told_in_full(void **state)
{
	struct gdri_error e = cqe_error();
	struct gdr_error out;

	(void)state;
	gdri_error_describe(&e, &out);
	assert_int_equal(out.status, -GDR_EREMOTEACCESS);
	assert_int_equal(out.peer, 3);
	assert_int_equal(out.qpn, 0x12a);
	assert_int_equal(out.wqe_index, 17);
	assert_int_equal(out.opcode, GDRI_OP_WRITE);
	assert_int_equal(out.syndrome, 0x13);
	assert_int_equal(out.vendor_syndrome, 0x88);
	assert_int_equal(out.is_cause, 1);
	assert_int_equal(out.addr, 0x20000);
	assert_int_equal(out.len, 4096);
	assert_int_equal(out.time_ns, 5);
	assert_string_equal(out.op, "put");
	assert_non_null(strstr(out.text, "gdr_put to PE 3"));
	assert_non_null(strstr(out.text, "remote access error (syndrome 0x13)"));
	assert_non_null(strstr(out.text, "vendor 0x88 (the responder refused"));
	assert_non_null(strstr(out.text, "QP 0x12a WQE 17 (RDMA_WRITE, opcode 0x08)"));
	assert_non_null(strstr(out.text, "4096 bytes at heap offset 0x20000"));
	assert_null(strstr(out.text, "may be earlier"));
	e.is_cause = 0;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "may be earlier"));
	assert_null(strstr(out.text, "below"));
	e.addr = -(uint64_t)72;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "4096 bytes at 72 bytes below the heap"));
}

/* The limit that counts is the transport's. */
static void a_silent_peer_has_its_limit(void **state)
{
	static const char *const options[] = {"GDR_ACK_TIMEOUT", "GDR_TIMEOUT"};
	struct gdri_error e = cqe_error();
	struct gdri_net net = {0};
	struct gdri_state st = {.net = &net};
	struct gdr_error out;
	char advice[64];
	size_t i;

	(void)state;
	e.status = -GDR_ERETRY;
	job = &st;
	for (i = 0; i < 2; i++) {
		net.patience = options[i];
		gdri_error_describe(&e, &out);
		snprintf(advice, sizeof(advice), "; is the peer alive and the link up? else raise %s", options[i]);
		assert_non_null(strstr(out.text, advice));
	}
	job = NULL;
}

static void says_refused(uint32_t op, uint32_t reason, const char *want)
{
	struct gdri_error e = {.kind = GDRI_ERROR_ARG, .status = -GDR_EINVAL, .op = op, .peer = -1, .len = 8,
			       .reason = GDRI_WORD | GDRI_ARG_NULL | reason};
	struct gdr_error out;

	gdri_error_describe(&e, &out);
	if (strncmp(out.text, want, strlen(want)) || strncmp(out.text + strlen(want), " refused: ", 10))
		fail_msg("%s, not %s", out.text, want);
}

/* A program that came up by NVSHMEM's names may have none of gdr's: messages have both. */
static void a_job_of_nvshmem_has_its_names(void **state)
{
	const uint32_t all = GDRI_CALL_ALL << 8, test = GDRI_CALL_TEST << 8, seen = GDRI_CALL_SEEN << 8;
	struct gdri_error e = {.kind = GDRI_ERROR_UNSEEN, .status = -GDR_EINVAL, .op = GDRI_P, .peer = -1, .len = 99,
			       .reason = GDRI_ARG_PE};
	struct gdri_state st = {.nvshmem = true};
	struct gdr_error out;

	(void)state;
	job = &st;
	assert_string_equal(gdri_call_name(GDRI_BARRIER), "nvshmem_barrier_all (gdr_barrier_all)");
	assert_string_equal(gdri_call_name(GDRI_GRID_SYNC), "gdr_grid_sync");
	assert_string_equal(gdri_call_name(GDRI_PUBLISH), "wait for an earlier post");
	says_refused(GDRI_P, 0, "nvshmem_TYPE_p (gdr_TYPE_p)");
	says_refused(GDRI_PUT, 1u << 24, "nvshmem_TYPE_iput (gdr_TYPE_iput)");
	says_refused(GDRI_PUT, 5u << 24, "gdr_put_bulk");
	says_refused(GDRI_PUT, 1u << 31, "gdr_ctx_put");
	says_refused(GDRI_WAIT_UNTIL, all, "nvshmem_TYPE_wait_until_all (gdr_TYPE_wait_until_all)");
	says_refused(GDRI_WAIT_UNTIL, test | all, "nvshmem_TYPE_test_all (gdr_TYPE_test_all)");
	says_refused(GDRI_SIGNAL_WAIT, seen, "gdr_signal_wait_until_seen");
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "failed: nvshmem_TYPE_p (gdr_TYPE_p) to PE 99: invalid argument; "));
	e.kind = GDRI_ERROR_WAIT;
	e.status = -GDR_ETIMEOUT;
	e.op = GDRI_SIGNAL_WAIT;
	e.waited_for = -1;
	gdri_error_describe(&e, &out);
	assert_int_equal(strncmp(out.text, "nvshmem_signal_wait_until (gdr_signal_wait_until): ", 51), 0);
	e.waited_for = 1;
	gdri_error_describe(&e, &out);
	assert_int_equal(strncmp(out.text, "gdr_signal_wait_until_from waiting for PE 1: ", 45), 0);
	st.nvshmem = false;
	says_refused(GDRI_WAIT_UNTIL, test | all, "gdr_TYPE_test_all");
	job = NULL;
}

/* size, sign and comparison as gdri_wait_form has them; values as device code extends them. */
static void says_word(uint32_t form, uint64_t value, uint64_t found, const char *text)
{
	struct gdri_error e = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_WAIT_UNTIL, .peer = -1,
			       .waited_for = -1, .line = form, .len = value, .local = found};
	struct gdr_error out;

	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, text));
}

static void what_is_waited_for_and_found(void **state)
{
	const uint32_t sign = 1 << 8;

	(void)state;
	says_word(8 | GDR_CMP_GT << 16, 1, 1, "; the word is 1, waited for > 1; raise");
	says_word(8 | GDR_CMP_EQ << 16, 1, 2, "; the word is 2, waited for == 1: it went past that (GDR_CMP_GE?); ");
	says_word(4 | sign | GDR_CMP_EQ << 16, 1, 0xfffffffe, "; the word is -2, waited for == 1; raise");
	says_word(2 | sign | GDR_CMP_LE << 16, (uint64_t)-4, 0xfffd, "; the word is -3, waited for <= -4; raise");
	says_word(8 | sign | GDR_CMP_EQ << 16, (uint64_t)-4, 3, "; the word is 3, waited for == -4: it went past");
	says_word(4 | GDR_CMP_NE << 16, 0xfffffffe, 0xfffffffe, "; the word is 4294967294, waited for != 4294967294; ");
}

static void what_is_refused_names_the_call(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_ARG, .status = -GDR_EINVAL, .op = GDRI_SIGNAL, .peer = -1, .len = 8,
			       .reason = GDRI_SIG | GDRI_ARG_NULL | 9u << 24};
	struct gdr_error out;

	(void)state;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_signal_fetch refused: invalid argument: sig is NULL"));
	e.reason = GDRI_SIG | GDRI_ARG_NULL | 1u << 31; /* on a context */
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_ctx_signal_op refused: invalid argument: sig is NULL"));
	e.reason = GDRI_SIG | GDRI_ARG_NULL | 127u << 24; /* of another version's */
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_signal_op refused: invalid argument: sig is NULL"));
	e.reason = GDRI_SIG | GDRI_ARG_NULL;
	e.peer = 1;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_signal_op to PE 1 refused: invalid argument: sig is NULL"));
	e.peer = -1;
	e.len = 9;
	e.waited_ns = 4;
	e.reason = GDRI_ARG_PE;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_signal_op refused: invalid argument: pe is 9"));
	e.op = GDRI_LOCK;
	e.addr = 0x4000;
	e.reason = GDRI_ARG_OTHER;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_clear_lock refused: invalid argument: this PE does not hold the lock"));
	e.op = GDRI_BARRIER;
	e.len = 2;
	e.local = 1;
	e.waited_ns = 3;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_barrier_all refused: invalid argument: 2 threads, warps or blocks of "
					 "this PE are in it at a time, the last one thread 3 of block 1: one of"));
}

static void a_broken_team_says_how_long(void **state)
{
	const struct gdri_fault gave_up = {1, 0, -GDR_ETIMEOUT, GDRI_TEAM_SYNC, 0, 0};
	struct gdri_error e = {.kind = GDRI_ERROR_BROKEN, .status = -GDR_ETIMEOUT, .op = GDRI_TEAM_SYNC, .peer = 0,
			       .local = gdri_fault_word(&gave_up)};
	static const char *const until[] = {"calls of all PEs end with this until gdr_finalize",
					    "all calls of GDR_TEAM_WORLD end with this until gdr_finalize",
					    "all calls of team 1 end with this until it is destroyed"};
	struct gdr_error out;

	(void)state;
	for (e.reason = 0; e.reason < 3; e.reason++) {
		gdri_error_describe(&e, &out);
		assert_non_null(strstr(out.text, until[e.reason]));
	}
}

/* What a broken call's record says by `e`, for each status that a PE gives up with, ends with what to do. */
static void broken_ends_whole(struct gdri_error *e, int peer, uint32_t op, uint64_t left)
{
	static const int all[] = {
#define ROW(name, number, text) -GDR_##name,
		GDR_STATUS_LIST(ROW)
#undef ROW
	};
	struct gdr_error out;
	const char *end;
	size_t len;

	e->peer = peer;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] > -GDR_ETIMEOUT)
			continue;
		e->status = all[i];
		e->local = gdri_fault_word_of(GDRI_MAX_PES - 2, peer, all[i], op) | left;
		gdri_error_describe(e, &out);
		len = strlen(out.text);
		assert_true(len < sizeof(out.text) - 1);
		if (all[i] != -GDR_EPEERLOST)
			continue;
		end = left ? "; what other PEs wait for comes before gdr_finalize" : "; look at that PE and its node";
		assert_string_equal(out.text + len - strlen(end), end);
	}
}

/* The text has room for the longest names, numbers and statuses. */
static void a_broken_call_says_all(void **state)
{
	struct gdri_state st = {.pe = GDRI_MAX_PES - 1, .call = "gdr_symmetric_unregister"};
	struct gdri_error e = {.kind = GDRI_ERROR_BROKEN};
	static const uint32_t whose[] = {0, 1, GDRI_MAX_TEAMS}; /* as struct gdri_error.reason */

	(void)state;
	job = &st;
	for (size_t i = 0; i < sizeof(whose) / sizeof(whose[0]); i++) {
		e.reason = whose[i];
		for (uint32_t op = GDRI_NONE; op < GDRI_N_OPS; op++) {
			e.op = op;
			broken_ends_whole(&e, GDRI_MAX_PES - 3, op, 0);
			broken_ends_whole(&e, GDRI_MAX_PES - 3, op, GDRI_FAULT_LEFT);
			broken_ends_whole(&e, st.pe, op, 0);
		}
	}
	job = NULL;
}

static void ends_with(const struct gdri_error *e, const char *end)
{
	struct gdr_error out;
	size_t len;

	gdri_error_describe(e, &out);
	len = strlen(out.text);
	if (len < strlen(end) || strcmp(out.text + len - strlen(end), end))
		fail_msg("%s: not \"%s\" at its end", out.text, end);
	if (strstr(out.text, "..."))
		fail_msg("%s: cut", out.text);
}

/* The longest text of an entry that failed ends with what to do, and has no half words. */
static void a_completion_ends_whole(void **state)
{
	static const uint32_t vendors[] = {0, 0x51, 0x81, 0x88, 0x89, 0x8a, 0xf9};
	struct gdri_net net = {.patience = "GDR_ACK_TIMEOUT"};
	struct gdri_state st = {.nvshmem = true, .net = &net};
	struct gdri_error e = cqe_error();

	(void)state;
	job = &st;
	e.peer = GDRI_MAX_PES - 1;
	e.qpn = 0xffffff;
	e.wqe_index = 0xffff;
	e.wqe_opcode = GDRI_OP_MASKED_CS;
	e.len = UINT32_MAX;
	e.is_cause = 0;
	e.syndrome = GDRI_SYND_FLUSH;
	e.local = offsetof(struct gdri_ctl, sink);
	for (size_t i = 0; i < 2 * sizeof(vendors) / sizeof(vendors[0]); i++) {
		e.addr = i % 2 ? (1ull << 47) - 1 : -(1ull << 47) + 1;
		e.vendor_syndrome = (uint8_t)vendors[i / 2];
		for (e.op = GDRI_NONE; e.op < GDRI_TEAM_SYNC; e.op++) { /* what has entries */
			e.status = -GDR_ERNR; /* without advice */
			ends_with(&e, e.op == GDRI_AMO ? "; the address of an atomic is a multiple of its size" : "");
			e.status = -GDR_ERETRY;
			ends_with(&e, e.op == GDRI_AMO ? "; the address of an atomic is a multiple of its size"
						       : "; is the peer alive and the link up? else raise "
							 "GDR_ACK_TIMEOUT");
			e.status = -GDR_EREMOTEINV;
			ends_with(&e, e.op == GDRI_AMO ? "; the address of an atomic is a multiple of its size"
						       : "; the peer's NIC does not allow this operation");
		}
	}
	job = NULL;
}

/* A wait may have more to say than there is room for: its end is what to do. */
static void a_wait_ends_with_what_to_do(void **state)
{
	static const char end[] = "; look at that PE, or raise GDR_TIMEOUT; do all members make this call, in the "
				  "same form and length?";
	struct gdri_error e = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_TEAM_SYNC + 1,
			       .peer = GDRI_MAX_PES - 1, .waited_for = GDRI_MAX_PES - 2, .waited_ns = UINT64_MAX};
	struct gdri_error word = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_WAIT_UNTIL,
				  .peer = GDRI_MAX_PES - 1, .waited_for = GDRI_MAX_PES - 2, .waited_ns = UINT64_MAX,
				  .line = 8 | 1 << 8 | GDR_CMP_EQ << 16, .len = 1ull << 63, .local = 1ull << 62};
	struct gdri_state st = {.nvshmem = true};

	(void)state;
	job = &st;
	for (; e.op < GDRI_N_OPS; e.op++)
		if (e.op != GDRI_GRID_SYNC)
			ends_with(&e, end);
	ends_with(&word, "; look at that PE, or raise GDR_TIMEOUT");
	job = NULL;
}

static void a_wait_names_both_ends(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_BARRIER,
			       .peer = 7, .waited_for = 1, .waited_ns = 2005000000u};
	struct gdr_error out;

	(void)state;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_barrier_all waiting for PE 1: time limit expired after 2.005 s"));
	assert_non_null(strstr(out.text, "ends at PE 7"));
	assert_non_null(strstr(out.text, "GDR_TIMEOUT"));
	e.peer = e.waited_for = -1;
	gdri_error_describe(&e, &out);
	assert_null(strstr(out.text, "PE -1"));
	assert_null(strstr(out.text, "that PE")); /* which none is named for */
	assert_non_null(strstr(out.text, "; raise GDR_TIMEOUT"));
	assert_null(strstr(out.text, "all members"));
	e.op = GDRI_SIGNAL_WAIT;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "_from would name"));
	e.status = -GDR_EABORTED; /* the program's wish: nobody is to be named */
	gdri_error_describe(&e, &out);
	assert_null(strstr(out.text, "_from would name"));
	e.status = -GDR_ETIMEOUT;
	e.op = GDRI_REDUCE; /* whose members may have called gdr_X and gdr_X_block, which do not meet */
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "do all members make this call, in the same form"));
}

/* A wait on a stream is executed by device code, whose record has that one's call. */
static void a_wait_names_the_call_on_a_stream(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_WAIT_UNTIL, .peer = -1,
			       .waited_for = -1, .addr = 0x20010};
	struct gdri_state st = {.n_pes = 1};
	const char *by_host = "gdr_host_d_for";
	struct gdri_wait_name *w;
	struct gdr_error out;

	(void)state;
	job = &st;
	pthread_mutex_init(&st.local_lock, NULL);
	pthread_mutex_lock(&st.local_lock); /* no heap is looked at */
	gdri_wait_name_begin(&st.stream_waits, 0x20000, 16, "gdr_a_on_stream");
	gdri_error_describe(&e, &out);
	assert_null(strstr(out.text, "on_stream"));
	gdri_wait_name_begin(&st.stream_waits, 0x20010, 8, "gdr_b_on_stream");
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_TYPE_wait_until: "));
	assert_non_null(strstr(out.text, "; heap offset 0x20010; gdr_b_on_stream was called for it"));
	e.op = GDRI_SIGNAL_WAIT; /* a kernel's */
	gdri_error_describe(&e, &out);
	assert_null(strstr(out.text, "on_stream"));
	e.op = GDRI_QUIET;
	gdri_error_describe(&e, &out);
	assert_null(strstr(out.text, "on_stream"));
	e.op = GDRI_WAIT_UNTIL;
	w = gdri_wait_name_begin(&st.host_waits, 0x20010, 8, by_host); /* a host thread's has that call alone */
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_host_d_for: "));
	assert_null(strstr(out.text, "was called"));
	gdri_wait_name_end(w, by_host);
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_TYPE_wait_until: "));
	assert_non_null(strstr(out.text, "gdr_b_on_stream was called for it"));
	for (int i = 0; i < GDRI_WAIT_NAMES; i++) /* it is forgotten */
		gdri_wait_name_begin(&st.stream_waits, 0x30000, 8, "gdr_c_on_stream");
	gdri_error_describe(&e, &out);
	assert_null(strstr(out.text, "on_stream"));
	pthread_mutex_unlock(&st.local_lock);
	job = NULL;
}

/* In gdr_finalize GDR_INIT_TIMEOUT bounds it. */
static void a_wait_names_its_limit(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_HOST_CALL, .peer = 1,
			       .waited_for = 1, .time_ns = 5000000000, .waited_ns = 2000000000};
	struct gdri_state st = {0};
	struct gdr_error out;

	(void)state;
	job = &st;
	for (st.finalize_ns = 0; st.finalize_ns < 5000000000; st.finalize_ns += 1500000000) {
		bool in_it = st.finalize_ns == 1500000000 || st.finalize_ns == 3000000000;

		e.op = GDRI_HOST_CALL;
		gdri_error_describe(&e, &out);
		assert_non_null(strstr(out.text, "collective call waiting for PE 1"));
		assert_non_null(strstr(out.text, in_it ? "; look at that PE, or raise GDR_INIT_TIMEOUT" :
						 "; look at that PE, or raise GDR_TIMEOUT"));
		e.op = GDRI_BARRIER;
		gdri_error_describe(&e, &out);
		assert_non_null(strstr(out.text, "; look at that PE, or raise GDR_TIMEOUT"));
	}
	job = NULL;
}

/* Which of the host's collectives a wait was of is known as long as that is the latest. */
static void a_wait_names_the_collective(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_HOST_CALL, .peer = 1,
			       .waited_for = 1, .time_ns = 5000, .waited_ns = 2000};
	struct gdri_state st = {.call = "gdr_malloc", .call_ns = 3000};
	struct gdr_error out;

	(void)state;
	job = &st;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_malloc waiting for PE 1: "));
	assert_string_equal(out.op, "collective call");
	e.op = GDRI_BARRIER;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_barrier_all waiting for PE 1: "));
	e.op = GDRI_HOST_CALL;
	st.call_ns = 5001;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "collective call waiting for PE 1: "));
	job = NULL;
}

static void says_broken(int own, const char *want, const char *not)
{
	struct gdri_error e = {.kind = GDRI_ERROR_BROKEN, .status = -GDR_ETIMEOUT, .op = GDRI_BARRIER, .peer = 1,
			       .local = gdri_fault_word_of(0, 1, -GDR_ETIMEOUT, GDRI_BARRIER)};
	struct gdri_state st = {.pe = own};
	struct gdr_error out;

	job = &st;
	gdri_error_describe(&e, &out);
	job = NULL;
	assert_non_null(strstr(out.text, want));
	assert_null(strstr(out.text, not));
}

/* The PE that the others waited for is told so, not of a PE with its number. */
static void a_late_pe_is_told_of_itself(void **state)
{
	(void)state;
	says_broken(2, "gdr_barrier_all: PE 0 gave up a gdr_barrier_all because of PE 1: time limit", "this one");
	says_broken(2, "; look at that PE, or raise GDR_TIMEOUT", "this PE did");
	says_broken(1, "gdr_barrier_all: PE 0 gave up a gdr_barrier_all because of this one: time limit", "PE 1");
	says_broken(1, "; look at what this PE did meanwhile, or raise GDR_TIMEOUT", "that PE");
}

/* A PE in gdr_finalize does not come later, and this PE is not one to look at elsewhere. */
static void a_wait_that_expires_has_advice_that_helps(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT, .op = GDRI_PUT_SIGNAL, .peer = 1,
			       .waited_for = 1};
	struct gdri_peer peers[2] = {{.finalizes = 1}, {.finalizes = 1}};
	struct gdri_state st = {.n_pes = 2, .peers = peers};
	struct gdr_error out;

	(void)state;
	job = &st;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "; PE 1 has called gdr_finalize; what other PEs wait for comes before "
					 "gdr_finalize"));
	assert_null(strstr(out.text, "raise"));
	peers[1].finalizes = 0;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "; look at that PE, or raise GDR_TIMEOUT"));
	st.pe = 1;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "; look at what this PE did meanwhile, or raise GDR_TIMEOUT"));
	job = NULL;
}

/* One that had called gdr_finalize cannot have ended before. */
static void a_lost_pe_ended_where_it_did(void **state)
{
	struct gdri_peer peers[2] = {{0}, {.finalizes = 2}};
	struct gdr_bootstrap boot = {.name = "uniqueid"};
	struct gdri_state st = {.n_pes = 2, .peers = peers, .boot = &boot};
	char text[160];

	(void)state;
	job = &st;
	gdri_place_lost(0, text, sizeof(text));
	assert_string_equal(text, "PE 0 is lost: its process ended before gdr_finalize, or is cut off");
	gdri_place_lost(1, text, sizeof(text));
	assert_string_equal(text, "PE 1 is lost: its process ended within gdr_finalize, or after that failed");
	job = NULL;
}

/* What gdri_errors_log prints of n records, and then the log of what came again. */
static void logged(struct gdri_dev *dev, uint32_t n, char *text, size_t room)
{
	int own = dup(2), texts = memfd_create("texts", 0);
	uint32_t seen = 0;
	ssize_t len;

	dev->n_errors = n;
	assert_true(own >= 0 && texts >= 0 && dup2(texts, 2) == 2);
	gdri_errors_log(dev, &seen);
	gdri_log_counts(0, 0);
	assert_int_equal(dup2(own, 2), 2);
	len = pread(texts, text, room - 1, 0);
	text[len > 0 ? len : 0] = 0;
	close(texts);
	close(own);
	assert_int_equal(seen, n);
}

static int lines_of(const char *text)
{
	int n = 0;

	while ((text = strchr(text, '\n')))
		text++, n++;
	return n;
}

/* Threads of a kernel that one PE holds up differ in the library's words alone; in those of the program they tell apart
 * what did not come. */
static void one_cause_is_one_line(void **state)
{
	static struct gdri_error errors[GDRI_MAX_ERRORS];
	struct gdri_dev dev = {.errors = errors};
	char text[8192];

	(void)state;
	for (uint32_t i = 0; i < 9; i++)
		errors[i] = (struct gdri_error){.state = 2, .kind = GDRI_ERROR_WAIT, .status = -GDR_ETIMEOUT,
						    .op = GDRI_REDUCE, .peer = 3, .waited_for = 3, .addr = 64 + 8 * i};
	logged(&dev, 9, text, sizeof(text));
	assert_int_equal(lines_of(text), 2);
	assert_non_null(strstr(text, "(8 more times)"));
	for (uint32_t i = 0; i < 9; i++)
		errors[i].addr += GDRI_CTL_SIZE, errors[i].op = GDRI_SIGNAL_WAIT;
	logged(&dev, 9, text, sizeof(text));
	assert_int_equal(lines_of(text), 9);
	for (uint32_t i = 0; i < 9; i++)
		errors[i].status = -GDR_EPEERLOST, errors[i].peer = errors[i].waited_for = 4 + (int)(i & 1);
	logged(&dev, 9, text, sizeof(text));
	assert_int_equal(lines_of(text), 4);
	assert_non_null(strstr(text, "(4 more times)"));
}

static void an_argument_names_the_line(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_ARG, .status = -GDR_EINVAL, .op = GDRI_GET, .peer = 9,
			       .addr = 0xdead, .len = 8, .line = 42};
	struct gdr_error out;

	(void)state;
	memset(e.file, 'a', sizeof(e.file)); /* without an end */
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_get to PE 9 refused: invalid argument: 0xdead, 8 bytes at aaa"));
	assert_non_null(strstr(out.text, ":42"));
}

static void a_local_address_out_of_reach_has_its_reason(void **state)
{
	struct gdri_error e = {.kind = GDRI_ERROR_ARG, .status = -GDR_EINVAL, .op = GDRI_PUT, .peer = 1,
			       .reason = GDRI_ARG_LOCAL, .addr = 0xdead, .len = 29};
	struct gdr_error out;

	(void)state;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "gdr_put to PE 1 refused: invalid argument: source 0xdead is neither in "
					 "the symmetric heap nor registered with gdr_buffer_register; "
					 "29 bytes, and more than 28 cannot go inline"));
	e.op = GDRI_GET;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "destination 0xdead is neither in the symmetric heap nor "
					 "registered with gdr_buffer_register as memory that may be written; "
					 "29 bytes"));
	assert_null(strstr(out.text, "inline"));
	e.op = GDRI_FETCH_AMO; /* where the old value goes */
	e.len = 8;
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, "destination 0xdead is neither in the symmetric heap nor "
					 "registered with gdr_buffer_register as memory that may be written; "
					 "8 bytes"));
	assert_null(strstr(out.text, "inline"));
	e.line = 4000000000u; /* the longest text keeps its end */
	e.addr = ~0ull;
	e.peer = 1023;
	e.op = GDRI_PUT_SIGNAL;
	memset(e.file, 'a', sizeof(e.file));
	gdri_error_describe(&e, &out);
	assert_non_null(strstr(out.text, ":4000000000; correct the call"));
}

static void says(struct gdri_error e, const char *text)
{
	struct gdr_error out;

	e.kind = GDRI_ERROR_ARG;
	e.status = -GDR_EINVAL;
	e.peer = e.peer ? e.peer : -1;
	gdri_error_describe(&e, &out);
	if (!strstr(out.text, text))
		fail_msg("not \"%s\": %s", text, out.text);
}
#define SAYS(text, ...) says((struct gdri_error){__VA_ARGS__}, text)

/* Which one is wrong, its value, what it may be. */
static void an_argument_has_its_reason(void **state)
{
	uint64_t call = GDRI_RQ_REDUCE | (uint64_t)0x0003 << 40, other = call | (uint64_t)3 << 48; /* max */

	(void)state;
	SAYS("gdr_TYPE_wait_until refused: invalid argument: cmp is 17, and comparisons are GDR_CMP_EQ (0) to "
	     "GDR_CMP_LE (5)",
	     .op = GDRI_WAIT_UNTIL, .reason = GDRI_ARG_CMP, .len = 17);
	SAYS("op is -3, and signal operations are GDR_SIGNAL_SET (0) and GDR_SIGNAL_ADD (1)",
	     .reason = GDRI_ARG_SIGNAL_OP, .len = (uint64_t)-3);
	SAYS("team is 5, which is no team that this PE is in", .reason = GDRI_ARG_TEAM, .len = 5);
	SAYS("pe is -1, and there are PEs 0 to 3", .reason = GDRI_ARG_PE, .len = (uint64_t)-1, .waited_ns = 4);
	SAYS("root is 7, which is no member's number, 0 to 2", .reason = GDRI_ARG_ROOT, .len = 7, .waited_ns = 3);
	SAYS("dest 0x1004 is no multiple of 8", .reason = GDRI_DEST | GDRI_ARG_ALIGN, .addr = 0x1004, .waited_ns = 8);
	SAYS("source is NULL, with 64 bytes", .reason = GDRI_SOURCE | GDRI_ARG_NULL, .len = 64);
	SAYS("indices is NULL, with 8 bytes", .reason = GDRI_INDICES | GDRI_ARG_NULL, .len = 8);
	SAYS("status 0x8, 4 bytes, lies where NULL does", .reason = GDRI_STATUS | GDRI_ARG_NULL, .addr = 8, .len = 4);
	SAYS("sig 0x10, 8 bytes, is not within the symmetric heap, 0x1000 to 0x2000",
	     .reason = GDRI_SIG | GDRI_ARG_HEAP, .addr = 0x10, .len = 8, .local = 0x1000, .waited_ns = 0x2000);
	SAYS("dest 0x1100, 8 bytes, lies over the library's own words, 0x1000 to 0x1800",
	     .reason = GDRI_DEST | GDRI_ARG_OWN, .addr = 0x1100, .len = 8, .local = 0x1000, .waited_ns = 0x1800);
	SAYS("dest 0x1ff8, 16 bytes, goes 8 bytes beyond the object of 4096 bytes at 0x1000",
	     .reason = GDRI_DEST | GDRI_ARG_OBJECT, .addr = 0x1ff8, .len = 16, .local = 0x1000, .waited_ns = 0x2000);
	SAYS("sig 0x2008, 8 bytes, is in no object: 8 bytes behind the one of 4096 bytes at 0x1000",
	     .reason = GDRI_SIG | GDRI_ARG_OBJECT, .addr = 0x2008, .len = 8, .local = 0x1000, .waited_ns = 0x2000);
	SAYS("source 0x100, 8 bytes, is in no object, and there is none before it",
	     .reason = GDRI_SOURCE | GDRI_ARG_OBJECT, .addr = 0x100, .len = 8);
	SAYS("9 elements of 8 bytes are more than the heap's 64 bytes", .reason = GDRI_ARG_SIZE, .len = 9, .local = 8,
	     .waited_ns = 64);
	SAYS("the stride of source is -5: 3 blocks of it are not within 64 bytes",
	     .reason = GDRI_SOURCE | GDRI_ARG_STRIDE, .len = (uint64_t)-5, .local = 3, .waited_ns = 64);
	SAYS("dest 0x10, 8 bytes, and source 0x14, 8 bytes, overlap", .reason = GDRI_ARG_OVERLAP, .addr = 0x10,
	     .len = 8, .local = 0x14, .waited_ns = 8);
	SAYS("call 9 of team 2, line 77 of PE 3, is not the same on all, max on PE 3 and sum on PE 1, "
	     "16 bytes on PE 3 and 32 on PE 1", .op = GDRI_REDUCE, .reason = GDRI_ARG_MATCH, .peer = 3,
	     .waited_for = 2, .wqe_index = 9 << 16 | 1, .qpn = 77, .addr = call, .local = other, .len = 32,
	     .waited_ns = 16);
}

static void every_opcode_has_a_name(void **state)
{
	static const unsigned int used[] = {GDRI_OP_NOP, GDRI_OP_WRITE, GDRI_OP_READ, GDRI_OP_ATOMIC_CS,
					    GDRI_OP_ATOMIC_FA, GDRI_OP_MASKED_CS, GDRI_OP_MASKED_FA,
					    GDRI_OP_DUMP};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		assert_string_not_equal(gdri_opcode_name(used[i]), "unknown");
	assert_string_equal(gdri_opcode_name(0x55), "unknown");
}

/* No field, however wild, makes the text overflow or unreadable. */
static void wild_records_are_harmless(void **state)
{
	unsigned char bytes[sizeof(struct gdri_error)];
	struct gdri_error e;
	struct gdr_error out;
	unsigned int seed = 1, i, round;

	(void)state;
	for (round = 0; round < 100000; round++) {
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
		memcpy(&e, bytes, sizeof(e));
		e.kind %= 4;
		gdri_error_describe(&e, &out);
		assert_true(memchr(out.text, 0, sizeof(out.text)) != NULL);
		assert_non_null(out.op);
	}
}

static void only_complete_records_are_copied(void **state)
{
	struct gdri_error records[GDRI_MAX_ERRORS];
	struct gdri_dev dev;
	struct gdr_error out[2];
	uint32_t i;

	(void)state;
	memset(&dev, 0, sizeof(dev));
	for (i = 0; i < GDRI_MAX_ERRORS; i++) {
		records[i] = cqe_error();
		records[i].wqe_index = i;
	}
	dev.errors = records;
	dev.n_errors = 3;
	records[1].state = 1; /* being written */
	assert_int_equal(gdri_errors_copy(&dev, out, 2), 2);
	assert_int_equal(out[0].wqe_index, 0);
	assert_int_equal(out[1].wqe_index, 2);
	assert_int_equal(gdri_errors_copy(&dev, NULL, 0), 2);
	dev.n_errors = 1000; /* counted, but not recorded */
	assert_int_equal(gdri_errors_copy(&dev, out, 1), GDRI_MAX_ERRORS - 1);
}

/* What was taken in vain (state 3) is passed over; what is being written is waited for. */
static void records_are_logged_in_order(void **state)
{
	struct gdri_error records[GDRI_MAX_ERRORS];
	struct gdri_dev dev;
	uint32_t i, seen = 0;

	(void)state;
	memset(&dev, 0, sizeof(dev));
	for (i = 0; i < GDRI_MAX_ERRORS; i++)
		records[i] = cqe_error();
	dev.errors = records;
	dev.n_errors = 4;
	records[0].state = 3;
	records[1].peer = 123;
	records[2].state = 1;
	records[3].peer = 124;
	gdri_errors_log(&dev, &seen);
	assert_int_equal(seen, 2);
	assert_non_null(strstr(gdri_log_last_error(), "PE 123"));
	records[2].state = 3;
	gdri_errors_log(&dev, &seen);
	assert_int_equal(seen, 4);
	assert_non_null(strstr(gdri_log_last_error(), "PE 124"));
	assert_int_equal(gdri_errors_copy(&dev, NULL, 0), 2);
}

/* ---- what comes again is counted ---- */

/* What `body` writes to stderr. */
static const char *caught(void (*body)(void))
{
	static char text[65536];
	int saved = dup(2);
	FILE *f = tmpfile();
	ssize_t n;

	assert_non_null(f);
	gdri_log_counts(0, 1);
	assert_true(dup2(fileno(f), 2) == 2);
	body();
	gdri_log_counts(0, 1);
	dup2(saved, 2);
	close(saved);
	n = pread(fileno(f), text, sizeof(text) - 1, 0);
	fclose(f);
	assert_true(n >= 0);
	text[n] = 0;
	return text;
}

static void one_again(void)
{
	int i;

	for (i = 0; i < 1000; i++)
		gdri_error("put: NULL with %d bytes", 4);
	gdri_log_counts(3600 * 1000, 0); /* not yet */
	for (i = 0; i < 20; i++) /* more than are kept */
		gdri_error("another, number %d", i);
	gdri_error("put: NULL with %d bytes", 4);
	assert_string_equal(gdri_log_last_error(), "put: NULL with 4 bytes");
}

/* The time is no part of an error; of two in turn each is counted. */
static void two_in_turn(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		gdri_error("barrier waiting for PE 1: time limit expired after 1.00%d s; look", i);
		gdri_warn("barrier waiting for PE 2: time limit expired after 1.00%d s; look", i);
	}
	assert_string_equal(gdri_log_last_error(), "barrier waiting for PE 1: time limit expired after 1.003 s; look");
	gdri_log_counts(0, 0);
	gdri_log_counts(0, 0); /* told once */
	gdri_error("barrier waiting for PE 1: time limit expired after 2.000 s; look");
}

static void what_comes_again_is_counted(void **state)
{
	const char *text = caught(one_again);
	size_t n = 0;

	(void)state;
	assert_true(!strncmp(text, "gdr[?] error: put: NULL with 4 bytes\n"
				   "gdr[?] error: put: NULL with 4 bytes (999 more times)\n"
				   "gdr[?] error: another, number 0\n", 120));
	for (; *text; text++)
		n += *text == '\n';
	assert_int_equal(n, 2 + 20 + 1);
	assert_string_equal(caught(two_in_turn),
			    "gdr[?] error: barrier waiting for PE 1: time limit expired after 1.000 s; look\n"
			    "gdr[?] warning: barrier waiting for PE 2: time limit expired after 1.000 s; look\n"
			    "gdr[?] error: barrier waiting for PE 1: time limit expired after 1.000 s; look (3 more "
			    "times)\n"
			    "gdr[?] warning: barrier waiting for PE 2: time limit expired after 1.000 s; look (3 more "
			    "times)\n"
			    "gdr[?] error: barrier waiting for PE 1: time limit expired after 1.000 s; look (1 more "
			    "time)\n");
}

/* For place.c: no job, no heap. */
struct gdri_state *gdri_state_get(void)
{
	return job;
}

uint64_t gdri_suballoc_next(const struct gdri_suballoc *a, uint64_t *offset)
{
	(void)a;
	(void)offset;
	return 0;
}

/* What a container's limits refuse goes by names of which nobody thinks of these. */
static void an_error_names_the_limit(void **state)
{
	(void)state;
	assert_non_null(strstr(gdri_thread_text(EAGAIN), "pids limit"));
	assert_null(strstr(gdri_errno_text(EAGAIN), "pids limit")); /* of locked memory, of a socket */
	assert_non_null(strstr(gdri_errno_text(EPERM), "seccomp"));
	assert_non_null(strstr(gdri_errno_text(EMFILE), "ulimit -n"));
	assert_string_equal(gdri_errno_text(ENOENT), strerror(ENOENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_distinct_and_have_texts),
		cmocka_unit_test(every_operation_has_a_name),
		cmocka_unit_test(a_request_has_the_name_of_its_records),
		cmocka_unit_test(a_completion_is_told_in_full),
		cmocka_unit_test(an_atomic_has_its_name),
		cmocka_unit_test(a_silent_peer_has_its_limit),
		cmocka_unit_test(what_is_waited_for_and_found),
		cmocka_unit_test(what_is_refused_names_the_call),
		cmocka_unit_test(a_job_of_nvshmem_has_its_names),
		cmocka_unit_test(a_broken_team_says_how_long),
		cmocka_unit_test(a_broken_call_says_all),
		cmocka_unit_test(a_completion_ends_whole),
		cmocka_unit_test(a_wait_ends_with_what_to_do),
		cmocka_unit_test(a_wait_names_both_ends),
		cmocka_unit_test(a_wait_names_the_call_on_a_stream),
		cmocka_unit_test(a_wait_names_its_limit),
		cmocka_unit_test(a_wait_names_the_collective),
		cmocka_unit_test(a_late_pe_is_told_of_itself),
		cmocka_unit_test(a_wait_that_expires_has_advice_that_helps),
		cmocka_unit_test(a_lost_pe_ended_where_it_did),
		cmocka_unit_test(one_cause_is_one_line),
		cmocka_unit_test(an_argument_names_the_line),
		cmocka_unit_test(a_local_address_out_of_reach_has_its_reason),
		cmocka_unit_test(an_argument_has_its_reason),
		cmocka_unit_test(an_error_names_the_limit),
		cmocka_unit_test(every_opcode_has_a_name),
		cmocka_unit_test(wild_records_are_harmless),
		cmocka_unit_test(only_complete_records_are_copied),
		cmocka_unit_test(records_are_logged_in_order),
		cmocka_unit_test(what_comes_again_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
