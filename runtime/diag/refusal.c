// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/diag/errors.h"

#include <stdbool.h>

#include <gdr/device.h>
#include <gdr/impl/request/request.h>

#include "runtime/core/text.h"

#define REASON(e) ((e)->reason & 0xffu)
typedef unsigned long long ull; /* as printf has it */

static const char *name_of(const char *const *names, size_t n, uint64_t i)
{
	return i < n && names[i] ? names[i] : "?";
}
#define NAME(names, i) name_of(names, sizeof(names) / sizeof((names)[0]), i)

static const char *arg_name(const struct gdri_error *e)
{
	static const char *const names[] = {"an argument", "dest",   "source", "sig",	"fetch",
					    "the word",	   "status", "values", "indices"};

	return NAME(names, e->reason >> 8 & 0xffu);
}

/* ---- calls of a collective that differ: another PE's words may be anything ---- */

static const char *what_name(uint64_t call)
{
#define REQUEST_NAME(request, number, prefix, rest, operation) [GDRI_RQ_##request] = rest,
	static const char *const names[] = {GDRI_REQUESTS(REQUEST_NAME)};

	return NAME(names, call & 0xff);
}

static const char *refusal_op_name(uint64_t call)
{
	static const char *const names[] = {"sum", "prod", "min", "max", "and", "or", "xor", "maxloc"};

	return NAME(names, call >> 48 & 0x7f);
}

static const char *type_name(uint64_t call)
{
	static const char *const names[4][4] = {
		{"uint8", "uint16", "uint32", "uint64"}, {"int8", "int16", "int32", "int64"},
		{"?", "half", "float", "double"}, {"?", "bfloat16", "?", "?"},
	};

	return names[call >> 44 & 3][call >> 40 & 3];
}

static const char *form_name(uint64_t call)
{
	static const char *const names[] = {"a thread", "a warp", "a block"};

	return NAME(names, call >> 8 & 0xff);
}

static bool call_reckons(uint64_t call)
{
	return (call & 0xff) >= GDRI_RQ_REDUCE && (call & 0xff) < GDRI_RQ_END;
}

/* Speaks only of what differs. there, here: the PEs. */
static void add_calls(struct text *t, uint64_t mine, uint64_t other, int there, int here)
{
	uint64_t differ = mine ^ other;

	if (differ & 0xff) {
		text_add(t, ", %s on PE %d and %s on PE %d", what_name(other), there, what_name(mine), here);
		return;
	}
	if (call_reckons(mine) && differ >> 48 & 0x7f)
		text_add(t, ", %s on PE %d and %s on PE %d", refusal_op_name(other), there, refusal_op_name(mine),
			 here);
	if (call_reckons(mine) && differ >> 40 & 0xff)
		text_add(t, ", of %s on PE %d and of %s on PE %d", type_name(other), there, type_name(mine), here);
	else if (differ >> 16 & 0xff)
		text_add(t, ", elements of %u bytes on PE %d and of %u on PE %d", (unsigned)(other >> 16 & 0xff), there,
		    (unsigned)(mine >> 16 & 0xff), here);
	if (differ >> 24 & 0xffff)
		text_add(t, ", root %u on PE %d and %u on PE %d", (unsigned)(other >> 24 & 0xffff), there,
		    (unsigned)(mine >> 24 & 0xffff), here);
	if (differ >> 8 & 0xff)
		text_add(t, ", by %s on PE %d and %s on PE %d", form_name(other), there, form_name(mine), here);
}

static void add_match(struct text *t, const struct gdri_error *e)
{
	unsigned int call = e->wqe_index >> 16;
	int here = (int)(e->wqe_index & 0xffff);

	if (REASON(e) == GDRI_ARG_ELSEWHERE) {
		text_add(t, "PE %d has not come to this call of team %d: its line %u is in %s of team %llu, to which "
			 "this PE has not come; all call them in one order", e->peer, e->waited_for, e->qpn,
			 what_name(e->local), (ull)e->len);
		return;
	}
	if (REASON(e) == GDRI_ARG_PEER) {
		text_add(t, "PE %d refused its own arguments of call %u of team %d, %s, in its line %u", e->peer, call,
		    e->waited_for, what_name(e->local), e->qpn);
		return;
	}
	text_add(t, "call %u of team %d, line %u of PE %d, is not the same on all", call, e->waited_for, e->qpn,
		 e->peer);
	if (REASON(e) == GDRI_ARG_STEPS) {
		text_add(t, ", dst %d and sst %d on PE %d and %d and %d on PE %d", (int)(int32_t)(e->waited_ns >> 32),
		    (int)(int32_t)e->waited_ns, e->peer, (int)(int32_t)(e->len >> 32), (int)(int32_t)e->len, here);
		return;
	}
	add_calls(t, e->addr, e->local, e->peer, here);
	if (e->len != e->waited_ns && !((e->addr ^ e->local) & 0xff))
		text_add(t, ", %llu bytes on PE %d and %llu on PE %d", (ull)e->waited_ns, e->peer, (ull)e->len, here);
}

/* ---- one PE's arguments ---- */

static void add_local(struct text *t, const struct gdri_error *e)
{
	bool source = e->op == GDRI_PUT || e->op == GDRI_PUT_SIGNAL;

	text_add(t, "%s 0x%llx is neither in the symmetric heap nor registered with gdr_buffer_register%s; %llu bytes",
	    source ? "source" : "destination", (ull)e->addr, source ? "" : " as memory that may be written",
	    (ull)e->len);
	if (source)
		text_add(t, ", and more than %u cannot go inline", GDRI_INLINE_MAX);
}

static void add_number(struct text *t, const struct gdri_error *e)
{
	long long value = (long long)e->len;

	switch (REASON(e)) {
	case GDRI_ARG_CTX:
		text_add(t, "there is no context %lld, or it is not shared with this thread", value);
		break;
	case GDRI_ARG_PE:
		text_add(t, "pe is %lld, and there are PEs 0 to %lld", value, (long long)e->waited_ns - 1);
		break;
	case GDRI_ARG_TEAM:
		text_add(t, "team is %lld, which is no team that this PE is in", value);
		break;
	case GDRI_ARG_ROOT:
		text_add(t, "root is %lld, which is no member's number", value);
		if (e->waited_ns)
			text_add(t, ", 0 to %lld", (long long)e->waited_ns - 1);
		break;
	case GDRI_ARG_CMP:
		text_add(t, "cmp is %lld, and comparisons are GDR_CMP_EQ (%d) to GDR_CMP_LE (%d)", value, GDR_CMP_EQ,
		    GDR_CMP_LE);
		break;
	case GDRI_ARG_SIGNAL_OP:
		text_add(t, "op is %lld, and signal operations are GDR_SIGNAL_SET (%d) and GDR_SIGNAL_ADD (%d)", value,
		    GDR_SIGNAL_SET, GDR_SIGNAL_ADD);
		break;
	case GDRI_ARG_STRIDE:
		text_add(t, "the stride of %s is %lld", arg_name(e), value);
		if (e->waited_ns)
			text_add(t, ": %llu blocks of it are not within %llu bytes", (ull)e->local, (ull)e->waited_ns);
		else
			text_add(t, ", and has to be 1 at least");
		break;
	case GDRI_ARG_THREADS:
		text_add(t, "%lld of the %llu threads of ", value, (ull)e->waited_ns);
		if (e->addr)
			text_add(t, "warp %llu of ", (ull)e->addr - 1);
		text_add(t, "block %llu make this call%s, and all have to", (ull)e->local,
			 e->op == GDRI_GRID_SYNC ? "" : " with equal arguments");
		break;
	default:
		text_add(t, "%llu blocks are more than the team has room for", (ull)e->len);
	}
}

/* Beyond the end of the last object that begins before it. */
static void add_object(struct text *t, const struct gdri_error *e)
{
	uint64_t begin = e->local, end = e->waited_ns;

	text_add(t, "%s 0x%llx, %llu bytes, ", arg_name(e), (ull)e->addr, (ull)e->len);
	if (e->addr < end)
		text_add(t, "goes %llu bytes beyond the object of %llu bytes at 0x%llx",
			 (ull)(e->addr + e->len - end), (ull)(end - begin), (ull)begin);
	else if (end)
		text_add(t, "is in no object: %llu bytes behind the one of %llu bytes at 0x%llx", (ull)(e->addr - end),
			 (ull)(end - begin), (ull)begin);
	else
		text_add(t, "is in no object, and there is none before it");
}

static void add_memory(struct text *t, const struct gdri_error *e)
{
	switch (REASON(e)) {
	case GDRI_ARG_ALIGN:
		text_add(t, "%s 0x%llx is no multiple of %llu, the size of its type", arg_name(e), (ull)e->addr,
		    (ull)e->waited_ns);
		break;
	case GDRI_ARG_NULL:
		if (e->addr)
			text_add(t, "%s 0x%llx, %llu bytes, lies where NULL does", arg_name(e), (ull)e->addr,
				 (ull)e->len);
		else
			text_add(t, "%s is NULL, with %llu bytes", arg_name(e), (ull)e->len);
		break;
	case GDRI_ARG_HEAP:
		text_add(t, "%s 0x%llx, %llu bytes, is not within the symmetric heap, 0x%llx to 0x%llx", arg_name(e),
		    (ull)e->addr, (ull)e->len, (ull)e->local, (ull)e->waited_ns);
		break;
	case GDRI_ARG_OWN:
		text_add(t, "%s 0x%llx, %llu bytes, lies over the library's own words, 0x%llx to 0x%llx", arg_name(e),
		    (ull)e->addr, (ull)e->len, (ull)e->local, (ull)e->waited_ns);
		break;
	case GDRI_ARG_SIZE:
		text_add(t, "%llu elements of %llu bytes are more than the heap's %llu bytes", (ull)e->len,
		    (ull)e->local, (ull)e->waited_ns);
		break;
	default:
		text_add(t, "dest 0x%llx, %llu bytes, and source 0x%llx, %llu bytes, overlap", (ull)e->addr,
			 (ull)e->len, (ull)e->local, (ull)e->waited_ns);
	}
}

/* By the operation. */
static void add_other(struct text *t, const struct gdri_error *e)
{
	if (e->op == GDRI_LOCK)
		text_add(t, "this PE does not hold the lock 0x%llx: gdr_set_lock, or a gdr_test_lock that returned 0, "
			 "comes before", (ull)e->addr);
	else if (e->op == GDRI_GRID_SYNC)
		text_add(t, "the kernel's %llu blocks need not run at once: gdr_collective_launch has them do so",
			 (ull)e->len);
	else if (e->op > GDRI_FENCE)
		text_add(t, "%llu threads, warps or blocks of this PE are in it at a time, the last one thread %llu of "
			 "block %llu: one of each PE calls, one at a time", (ull)e->len, (ull)e->waited_ns,
			 (ull)e->local);
	else
		text_add(t, "0x%llx, %llu bytes", (ull)e->addr, (ull)e->len);
}

void gdri_refusal_text(const struct gdri_error *e, char *buf, size_t room)
{
	struct text t = {buf, room, 0};

	switch (REASON(e)) {
	case GDRI_ARG_MATCH:
	case GDRI_ARG_STEPS:
	case GDRI_ARG_PEER:
	case GDRI_ARG_ELSEWHERE:
		add_match(&t, e);
		break;
	case GDRI_ARG_LOCAL:
		add_local(&t, e);
		break;
	case GDRI_ARG_ALIGN:
	case GDRI_ARG_NULL:
	case GDRI_ARG_HEAP:
	case GDRI_ARG_OWN:
	case GDRI_ARG_SIZE:
	case GDRI_ARG_OVERLAP:
		add_memory(&t, e);
		break;
	case GDRI_ARG_OBJECT:
		add_object(&t, e);
		break;
	case GDRI_ARG_OTHER:
		add_other(&t, e);
		break;
	default:
		add_number(&t, e);
	}
}
