/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of strict mode, in the manner of valgrind: the first mistakes of a
 * kind in full when they are made, the others counted, the counts at the end. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "softhca/tools/options.h"
#include "softhca/strict/strict_impl.h"

enum { FULL_REPORTS = 3 }; /* of a kind */

static const struct {
	const char *name, *text, *see;
} rules[RULE_COUNT] = {
#define RULE(id, name, text, see) [RULE_##id] = {name, text, see},
#include "softhca/strict/strict_rules.def"
#undef RULE
};

static unsigned long counts[RULE_COUNT];
unsigned long strict_wqes;

struct text {
	char buf[4096];
	size_t n;
};

static void report_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

__attribute__((format(printf, 2, 0))) static void report_vadd(struct text *t, const char *fmt, va_list ap)
{
	int n = vsnprintf(t->buf + t->n, sizeof(t->buf) - t->n, fmt, ap);

	if (n > 0)
		t->n += (size_t)n;
	if (t->n >= sizeof(t->buf))
		t->n = sizeof(t->buf) - 1;
}

static void report_add(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_vadd(t, fmt, ap);
	va_end(ap);
}

static void report_line(struct text *t)
{
	report_add(t, "softhca[%d]: ", (int)getpid());
}

/* One write, so that reports of several processes do not mix. */
static void report_emit(const struct text *t)
{
	if (write(STDERR_FILENO, t->buf, t->n) < 0) {
		/* stderr is closed: the exit status still says it */
	}
}

static void add_place(struct text *t, const struct strict_at *at)
{
	if (at->cq)
		report_add(t, "CQ 0x%x", at->cq->cqn);
	if (at->cq && at->qp)
		report_add(t, ", ");
	if (at->qp)
		report_add(t, "QP 0x%x", at->qp->qpn);
	if (at->qp && at->has_index && at->qp->sq)
		report_add(t, ", WQE index %u (block %u of a ring of %u)", at->index,
			   at->index & (strict_ring_blocks(at->qp) - 1), strict_ring_blocks(at->qp));
	if (at->srq)
		report_add(t, "SRQ 0x%x", at->srq->srqn);
	if (at->is_recv)
		report_add(t, ", receive entry %u of %u", at->entry, at->entries);
	if (at->cq || at->qp || at->srq)
		report_add(t, ": ");
}

static void add_bytes(struct text *t, const struct strict_at *at)
{
	size_t n = at->n < STRICT_DUMP_MAX ? at->n : STRICT_DUMP_MAX;

	for (size_t off = 0; off < n; off += 16) {
		report_line(t);
		report_add(t, " %c +%02zx ", at->mark / 16 == off / 16 ? '>' : ' ', off);
		for (size_t i = off; i < off + 16 && i < n; i++)
			report_add(t, "%s%02x", i % 4 ? "" : " ", at->bytes[i]);
		report_add(t, "\n");
	}
}

void strict_report(enum strict_rule rule, const struct strict_at *at, const char *fmt, ...)
{
	struct text t = {.n = 0};
	va_list ap;

	if (++counts[rule] > FULL_REPORTS)
		return;
	report_line(&t);
	report_add(&t, "strict: %s: %s\n", rules[rule].name, rules[rule].text);
	report_line(&t);
	report_add(&t, "   ");
	add_place(&t, at);
	va_start(ap, fmt);
	report_vadd(&t, fmt, ap);
	va_end(ap);
	report_add(&t, "\n");
	add_bytes(&t, at);
	report_line(&t);
	report_add(&t, "   see %s\n", rules[rule].see);
	if (counts[rule] == FULL_REPORTS) {
		report_line(&t);
		report_add(&t, "   (more of this kind are only counted)\n");
	}
	report_emit(&t);
}

void strict_command(enum strict_rule rule, const char *fmt, ...)
{
	const struct strict_at nowhere = {.mark = STRICT_NO_MARK};
	char text[256];
	va_list ap;

	if (!strict_on)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strict_report(rule, &nowhere, "%s", text);
}

unsigned long strict_summary(void)
{
	unsigned long errors = 0;
	unsigned kinds = 0;
	struct text t = {.n = 0};

	for (unsigned i = 0; i < RULE_COUNT; i++) {
		errors += counts[i];
		kinds += counts[i] != 0;
	}
	if (!errors && hca_options()->strict < 2)
		return 0;
	report_line(&t);
	report_add(&t, "strict: %lu error%s of %u kind%s in %lu WQEs\n", errors, errors == 1 ? "" : "s",
		   kinds, kinds == 1 ? "" : "s", strict_wqes);
	for (unsigned i = 0; i < RULE_COUNT; i++) {
		if (!counts[i])
			continue;
		report_line(&t);
		report_add(&t, "%8lu  %-16s %s\n", counts[i], rules[i].name, rules[i].text);
	}
	report_emit(&t);
	return errors;
}
