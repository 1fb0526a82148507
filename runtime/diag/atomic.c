// SPDX-License-Identifier: BSD-3-Clause
/* What an entry of a queue that failed was to do to its word, by its operands. */
#include "runtime/diag/errors.h"

#include <string.h>

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/coll/reduce_code.h>

#include "runtime/core/text.h"
#include "runtime/net/execute.h"

/* NULL: none of those below. */
static const char *atomic_masked(const struct gdri_net_atomic *a)
{
	uint64_t all = a->size == 4 ? UINT32_MAX : UINT64_MAX;

	if (a->compare_mask == all)
		return "compare_swap";
	if (a->compare_mask)
		return NULL;
	if (a->value_mask == all)
		return "swap";
	return a->value ? "or" : "and";
}

static const char *atomic_plain(const struct gdri_net_atomic *a)
{
	if (a->compares)
		return atomic_masked(a);
	if (a->boundary)
		return "xor";
	return a->value ? "add" : "fetch";
}

static const char *atomic_combined(const struct gdri_net_atomic *a)
{
	static const char *const ops[] = {[GDRI_SUM] = "add", [GDRI_MIN] = "min", [GDRI_MAX] = "max"};
	uint32_t op = a->code >> 8;

	return op < sizeof(ops) / sizeof(ops[0]) ? ops[op] : NULL;
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
	bool brings = e->local != offsetof(struct gdri_ctl, sink), fetches;
	struct gdri_net_atomic a;
	const char *op, *type;

	memcpy(w.bytes + 32, e->file, 32);
	(void)gdri_net_atomic(&w, &a);
	op = a.code ? atomic_combined(&a) : atomic_plain(&a);
	type = atomic_type(&a);
	if (!op) {
		text_add(t, "%s", gdri_call_name(e->op));
		return;
	}
	if (!brings && !strcmp(op, "swap"))
		op = "set";
	fetches = brings && strcmp(op, "swap") && strcmp(op, "compare_swap") && strcmp(op, "fetch");
	text_add(t, "gdr_%s_atomic_%s%s", type ? type : "TYPE", fetches ? "fetch_" : "", op);
	if (!type)
		text_add(t, " of %u bytes", a.size);
	if (!brings && !a.code && a.size == 8 && (!strcmp(op, "set") || !strcmp(op, "add")))
		text_add(t, ", or a signal,");
}
