/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on request (SOFTHCA_FAULTS): a strict parser for the schedule, and
 * the questions that the data path asks it. Random decisions come from one
 * seeded generator, so a run that sends the same packets loses the same ones.
 *
 *   schedule := clause { ';' clause }
 *   clause   := [ 'pe' N ':' ] ( setting { ',' setting } | 'drop all'
 *             | 'mute at' TIME | 'qp' ( N | '*' ) 'wqe' N ':' action )
 *   setting  := 'drop=' P | 'dup=' P | 'reorder=' P | 'delay=' TIME | 'seed=' N
 *   action   := 'error' SYNDROME '/' VENDOR | 'drop'
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/dp.h"
#include "softhca/options.h"

enum { MAX_RULES = 64, REORDER_NS = 200000, ANY_QP = 1 << 24 };

struct rule {
	uint32_t qpn; /* or ANY_QP */
	uint64_t wqe;
	bool drop;
	uint8_t syndrome, vendor;
};

struct schedule {
	double drop, dup, reorder;
	uint64_t delay, seed, mute_at; /* mute_at: ns after start, 0 never */
	bool drop_all, mute;
	struct rule rules[MAX_RULES];
	unsigned n_rules;
};

static struct schedule plan;
static bool active;
static uint64_t rng, mute_time;
static uint32_t gone[MAX_RULES]; /* QPNs whose packets vanish */
static unsigned n_gone;

/* ---- parser ---- */

struct parser {
	const char *start, *at;
	char *err;
	size_t err_n;
	uint32_t pe; /* of this process; rules for others are checked and left out */
	bool have_pe, mine;
	struct schedule *out;
};

static int fail(struct parser *p, const char *what)
{
	if (p->err && p->err_n)
		snprintf(p->err, p->err_n, "SOFTHCA_FAULTS: %s at character %zu: \"%.24s\"", what,
			 (size_t)(p->at - p->start) + 1, p->at);
	return -EINVAL;
}

static void skip(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

static bool symbol(struct parser *p, char c)
{
	skip(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

/* A whole word: not the beginning of a longer one. */
static bool word(struct parser *p, const char *w)
{
	size_t n = strlen(w);

	skip(p);
	if (strncmp(p->at, w, n) || isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
		return false;
	p->at += n;
	return true;
}

static int number(struct parser *p, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	skip(p);
	if (!isdigit((unsigned char)*p->at))
		return fail(p, "expected a number");
	errno = 0;
	v = strtoull(p->at, &end, p->at[0] == '0' && p->at[1] == 'x' ? 16 : 10);
	if (errno || v > max)
		return fail(p, "number out of range");
	if (isalnum((unsigned char)*end) || *end == '.')
		return fail(p, "malformed number");
	p->at = end;
	*out = v;
	return 0;
}

static int real(struct parser *p, double *out)
{
	char *end;

	skip(p);
	if (!isdigit((unsigned char)*p->at) && *p->at != '.')
		return fail(p, "expected a number");
	*out = strtod(p->at, &end);
	if (end == p->at)
		return fail(p, "expected a number");
	p->at = end;
	return 0;
}

static int probability(struct parser *p, double *out)
{
	const char *at;

	skip(p);
	at = p->at;
	if (real(p, out))
		return -EINVAL;
	if (*out > 1 || isalnum((unsigned char)*p->at)) {
		p->at = at;
		return fail(p, "expected a probability from 0 to 1");
	}
	return 0;
}

static int duration(struct parser *p, uint64_t *out)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	double v;

	if (real(p, &v))
		return -EINVAL;
	for (unsigned i = 0; i < 4; i++) {
		if (!word(p, units[i].unit))
			continue;
		if (v * units[i].ns > 1e15)
			return fail(p, "time out of range before");
		*out = (uint64_t)(v * units[i].ns);
		return 0;
	}
	return fail(p, "expected a unit (ns, us, ms, s)");
}

static int expect(struct parser *p, char c)
{
	char what[32];

	if (symbol(p, c))
		return 0;
	snprintf(what, sizeof(what), "expected '%c'", c);
	return fail(p, what);
}

static int setting(struct parser *p)
{
	struct schedule scratch, *s = p->mine ? p->out : &scratch;

	if (word(p, "drop"))
		return expect(p, '=') ? -EINVAL : probability(p, &s->drop);
	if (word(p, "dup"))
		return expect(p, '=') ? -EINVAL : probability(p, &s->dup);
	if (word(p, "reorder"))
		return expect(p, '=') ? -EINVAL : probability(p, &s->reorder);
	if (word(p, "delay"))
		return expect(p, '=') ? -EINVAL : duration(p, &s->delay);
	if (word(p, "seed"))
		return expect(p, '=') ? -EINVAL : number(p, UINT64_MAX, &s->seed);
	return fail(p, "expected drop, dup, reorder, delay, seed, mute, qp or pe");
}

static int qp_rule(struct parser *p)
{
	struct rule r = { .qpn = ANY_QP };
	uint64_t v;

	if (!symbol(p, '*')) {
		if (number(p, 0xffffff, &v))
			return -EINVAL;
		r.qpn = (uint32_t)v;
	}
	if (!word(p, "wqe"))
		return fail(p, "expected wqe");
	if (number(p, UINT64_MAX, &r.wqe) || expect(p, ':'))
		return -EINVAL;
	if (word(p, "drop")) {
		r.drop = true;
	} else if (word(p, "error")) {
		if (number(p, 0xff, &v))
			return -EINVAL;
		if (!v)
			return fail(p, "syndrome 0 is success, before");
		r.syndrome = (uint8_t)v;
		if (expect(p, '/') || number(p, 0xff, &v))
			return -EINVAL;
		r.vendor = (uint8_t)v;
	} else {
		return fail(p, "expected error or drop");
	}
	if (!p->mine)
		return 0;
	if (p->out->n_rules == MAX_RULES)
		return fail(p, "too many qp clauses");
	p->out->rules[p->out->n_rules++] = r;
	return 0;
}

static int mute(struct parser *p)
{
	uint64_t at;

	if (!word(p, "at"))
		return fail(p, "expected at");
	if (duration(p, &at))
		return -EINVAL;
	if (p->mine) {
		p->out->mute = true;
		p->out->mute_at = at;
	}
	return 0;
}

static int clause(struct parser *p)
{
	const char *at;
	uint64_t pe;

	p->mine = true;
	if (word(p, "pe")) {
		if (number(p, INT32_MAX, &pe) || expect(p, ':'))
			return -EINVAL;
		p->mine = p->have_pe && p->pe == pe;
	}
	if (word(p, "qp"))
		return qp_rule(p);
	if (word(p, "mute"))
		return mute(p);
	skip(p);
	at = p->at;
	if (word(p, "drop") && word(p, "all")) {
		if (p->mine)
			p->out->drop_all = true;
		return 0;
	}
	p->at = at;
	do {
		if (setting(p))
			return -EINVAL;
	} while (symbol(p, ','));
	return 0;
}

static int parse(struct parser *p, const char *text)
{
	p->start = p->at = text;
	do {
		skip(p);
		if (!*p->at) /* nothing, or a ';' at the end */
			return 0;
		if (clause(p))
			return -EINVAL;
	} while (symbol(p, ';'));
	skip(p);
	return *p->at ? fail(p, "expected ';'") : 0;
}

int faults_check(const char *text, char *err, size_t n)
{
	static struct schedule scratch;
	struct parser p = { .err = err, .err_n = n, .out = &scratch, .have_pe = false };

	if (err && n)
		err[0] = 0;
	memset(&scratch, 0, sizeof(scratch));
	return parse(&p, text);
}

/* ---- decisions ---- */

int faults_start(uint64_t now, char *err, size_t n)
{
	const char *text = hca_options()->faults, *rank = getenv("PMIX_RANK");
	struct parser p = { .err = err, .err_n = n, .out = &plan };
	char *end;

	memset(&plan, 0, sizeof(plan));
	active = false;
	n_gone = 0;
	if (!text)
		return 0;
	if (rank && isdigit((unsigned char)*rank)) {
		p.pe = (uint32_t)strtoul(rank, &end, 10);
		p.have_pe = !*end;
	}
	plan.seed = 1;
	if (parse(&p, text))
		return -EINVAL;
	rng = plan.seed * 0x9e3779b97f4a7c15ull + p.pe;
	mute_time = now + plan.mute_at;
	active = true;
	return 0;
}

bool faults_active(void)
{
	return active;
}

/* splitmix64, public domain algorithm */
static double draw(void)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return (double)(z >> 11) / (double)(1ull << 53);
}

static bool vanished(uint32_t qpn, uint64_t now)
{
	if (plan.drop_all || (plan.mute && now >= mute_time))
		return true;
	for (unsigned i = 0; i < n_gone; i++)
		if (gone[i] == qpn)
			return true;
	return false;
}

enum fault_verdict faults_tx(uint32_t qpn, uint64_t now, uint64_t *until)
{
	if (vanished(qpn, now) || (plan.drop > 0 && draw() < plan.drop))
		return FAULT_DROP;
	*until = now + plan.delay;
	if (plan.reorder > 0 && draw() < plan.reorder) {
		*until += REORDER_NS;
		return FAULT_HOLD;
	}
	if (plan.delay)
		return FAULT_HOLD;
	return plan.dup > 0 && draw() < plan.dup ? FAULT_DUP : FAULT_PASS;
}

bool faults_rx_drop(uint32_t qpn, uint64_t now)
{
	return vanished(qpn, now);
}

bool faults_wqe(uint32_t qpn, uint64_t n, unsigned blocks, uint8_t *syndrome, uint8_t *vendor)
{
	for (unsigned i = 0; i < plan.n_rules; i++) {
		const struct rule *r = &plan.rules[i];

		if ((r->qpn != ANY_QP && r->qpn != qpn) || r->wqe < n || r->wqe >= n + blocks)
			continue;
		if (!r->drop) {
			*syndrome = r->syndrome;
			*vendor = r->vendor;
			return true;
		}
		if (n_gone < MAX_RULES && !vanished(qpn, 0))
			gone[n_gone++] = qpn;
	}
	return false;
}
