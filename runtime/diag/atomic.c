// SPDX-License-Identifier: BSD-3-Clause
/* What an entry of a queue that failed was to do to its word, by its operands. */
#include "runtime/diag/errors.h"

#include <stdbool.h>
#include <string.h>

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/coll/reduce_code.h>

#include "runtime/core/text.h"
#include "runtime/net/execute.h"

/* Behind "gdr_TYPE_atomic_", for who gets the old value (brings) and who does not. NULL: none of those below. */
static const char *atomic_masked(const struct gdri_net_atomic *a, bool brings)
{
	uint64_t all = a->size == 4 ? UINT32_MAX : UINT64_MAX;

	if (a->compare_mask == all)
		return "compare_swap";
	if (a->compare_mask)
		return NULL;
	if (a->value_mask == all)
		return brings ? "swap" : "set";
	if (a->value)
		return brings ? "fetch_or" : "or";
	return brings ? "fetch_and" : "and";
}

static const char *atomic_plain(const struct gdri_net_atomic *a, bool brings)
{
	if (a->compares)
		return atomic_masked(a, brings);
	if (a->boundary)
		return brings ? "fetch_xor" : "xor";
	if (a->value)
		return brings ? "fetch_add" : "add";
	return "fetch";
}

static const char *atomic_combined(const struct gdri_net_atomic *a, bool brings)
{
	static const char *const ops[][2] = {[GDRI_SUM] = {"add", "fetch_add"}, [GDRI_MIN] = {"min", "fetch_min"},
					     [GDRI_MAX] = {"max", "fetch_max"}};
	uint32_t op = a->code >> 8;

	return op < sizeof(ops) / sizeof(ops[0]) ? ops[op][brings] : NULL;
}

/* A signal is a set or an add, too. */
static bool atomic_may_signal(const struct gdri_net_atomic *a)
{
	if (a->code || a->size != 8)
		return false;
	return a->compares ? !a->compare_mask && a->value_mask == UINT64_MAX : !a->boundary && a->value;
}

/* NULL: any integer. */
static const char *atomic_type(const struct gdri_net_atomic *a)
{
	static const char *const types[][2] = {[GDRI_C_UNSIGNED] = {"uint32", "uint64"},
					       [GDRI_C_SIGNED] = {"int32", "int64"},
					       [GDRI_C_FLOAT] = {"float", "double"}};
	uint32_t cls = a->code >> 4 & 15u;

	return a->code && cls < sizeof(types) / sizeof(types[0]) ? types[cls][a->size == 8] : NULL;
}

void gdri_atomic_text(const struct gdri_error *e, struct text *t)
{
	struct gdri_net_wqe w = {.opcode = e->wqe_opcode, .opmod = e->reason, .ds = 4};
	bool brings = e->local != offsetof(struct gdri_ctl, sink);
	struct gdri_net_atomic a;
	const char *op, *type;

	memcpy(w.bytes + 32, e->file, 32);
	(void)gdri_net_atomic(&w, &a);
	op = a.code ? atomic_combined(&a, brings) : atomic_plain(&a, brings);
	type = atomic_type(&a);
	if (!op) {
		text_add(t, "%s", gdri_call_name(e->op));
		return;
	}
	text_add(t, "gdr_%s_atomic_%s", type ? type : "TYPE", op);
	if (!type)
		text_add(t, " of %u bytes", a.size);
	if (!brings && atomic_may_signal(&a))
		text_add(t, ", or a signal,");
}
