/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule's grammar, strictly: what cannot be read is refused with its
 * place and with what may stand there.
 *
 *   schedule := [ clause ] { ';' [ clause ] }
 *   clause   := { 'pe' N ':' | 'qp' ( N | '*' ) [ ':' ] | 'peer' ( N | ADDRESS ) [ ':' ] } what
 *   what     := setting { ',' setting } [ window ]
 *             | ( 'drop' 'all' | 'mute' | 'link' 'down' ) [ window ]
 *             | 'wqe' N ':' ( 'error' SYNDROME '/' VENDOR | 'drop' )
 *             | 'refuse' OBJECT ( N | 'after' N )
 *   window   := [ 'at' ( TIME | 'wqe' N ) ] [ 'for' TIME ] */
#include "softhca/faults/faults_plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "softhca/faults/faults_lex.h"

enum value_type { PROBABILITY, REORDER, TIME, RATE, NUMBER };
enum { REORDER_MAX = 1000 };

/* WHOLE: of the process, so without qp and peer; FIXED: at all times. */
enum { WHOLE = 1, FIXED = 2 };

static const struct {
	const char *name;
	enum fault_setting what;
	enum value_type type;
	unsigned rules;
	uint64_t max;
} settings[] = {
	{"drop", SET_DROP, PROBABILITY, 0, 0},
	{"dup", SET_DUP, PROBABILITY, 0, 0},
	{"reorder", SET_REORDER, REORDER, 0, 0},
	{"corrupt", SET_CORRUPT, PROBABILITY, 0, 0},
	{"delay", SET_DELAY, TIME, 0, 0},
	{"slow", SET_SLOW, TIME, 0, 0},
	{"rate", SET_RATE, RATE, 0, 0},
	{"doorbell", SET_DOORBELL, TIME, 0, 0},
	{"cqe", SET_CQE, TIME, 0, 0},
	{"first_wqe", SET_FIRST_WQE, NUMBER, WHOLE | FIXED, UINT32_MAX},
	{"first_cqe", SET_FIRST_CQE, NUMBER, WHOLE | FIXED, UINT32_MAX},
	{"first_psn", SET_FIRST_PSN, NUMBER, WHOLE | FIXED, 0xffffff},
	{"seed", SET_SEED, NUMBER, WHOLE | FIXED, UINT64_MAX},
};

static const char expected_clause[] =
	"expected drop, dup, reorder, corrupt, delay, slow, rate, doorbell, cqe, first_wqe, "
	"first_cqe, first_psn, seed, mute, link, gid, refuse, pe, peer or qp";

static const char *const objects[FAULT_OBJECTS] = {
	[FAULT_PD] = "pd", [FAULT_MR] = "mr",	[FAULT_UMEM] = "umem", [FAULT_CQ] = "cq",
	[FAULT_QP] = "qp", [FAULT_SRQ] = "srq", [FAULT_AH] = "ah",     [FAULT_UAR] = "uar",
};

struct parser {
	struct lexer l;
	const uint32_t *rank; /* of this process, or NULL */
	bool mine;	      /* the clause is for this process */
	bool have_pe;
	struct fault_plan *out;
};

/* ---- values ---- */

static int parse_probability(struct lexer *l, uint64_t *out)
{
	const char *at = lex_place(l);
	double v;

	if (lex_real(l, &v))
		return -EINVAL;
	if (v > 1)
		return lex_fail_at(l, at, "expected a probability from 0 to 1");
	*out = (uint64_t)(v * (double)FAULT_ONE);
	return 0;
}

/* A probability, or the depth of a window in which packets change places. */
static int parse_reorder(struct lexer *l, struct fault_clause *c)
{
	const char *at = lex_place(l);
	double v;

	if (lex_real(l, &v))
		return -EINVAL;
	if (v > 1 && (v > REORDER_MAX || v != (double)(uint64_t)v))
		return lex_fail_at(l, at,
				   "expected a probability from 0 to 1 or a depth from 2 to 1000");
	c->value[SET_REORDER] = v > 1 ? 0 : (uint64_t)(v * (double)FAULT_ONE);
	c->value[SET_REORDER_DEPTH] = v > 1 ? (uint64_t)v : 0;
	c->set |= 1u << SET_REORDER_DEPTH;
	return 0;
}

static int parse_value(struct lexer *l, unsigned i, struct fault_clause *c)
{
	uint64_t *out = &c->value[settings[i].what];

	switch (settings[i].type) {
	case PROBABILITY:
		return parse_probability(l, out);
	case REORDER:
		return parse_reorder(l, c);
	case TIME:
		return lex_time(l, out);
	case RATE:
		return lex_rate(l, out);
	case NUMBER:
		break;
	}
	return lex_number(l, 0, settings[i].max, out);
}

/* ---- selection ---- */

static int qp_scope(struct lexer *l, struct fault_clause *c)
{
	uint64_t v = FAULT_ANY_QP;

	if (c->of_qp)
		return lex_fail(l, "a second qp in one clause");
	if (!lex_symbol(l, '*') && lex_number(l, 0, 0xffffff, &v))
		return -EINVAL;
	c->of_qp = true;
	c->qpn = (uint32_t)v;
	lex_symbol(l, ':');
	return 0;
}

/* An IPv4 address as it is written, an IPv6 one in brackets. */
static bool parse_address(struct lexer *l, struct in6_addr *out)
{
	const char *at = lex_place(l);
	bool six = *at == '[';
	size_t n = strspn(at + six, six ? "0123456789abcdefABCDEF:." : "0123456789.");
	char text[INET6_ADDRSTRLEN];

	if (n >= sizeof(text) || (six ? at[1 + n] != ']' : !memchr(at, '.', n)))
		return false;
	memcpy(text, at + six, n);
	text[n] = 0;
	memset(out, 0, sizeof(*out));
	out->s6_addr[10] = out->s6_addr[11] = 0xff;
	if (inet_pton(six ? AF_INET6 : AF_INET, text, six ? out->s6_addr : out->s6_addr + 12) != 1)
		return false;
	l->at += n + (six ? 2 : 0);
	return true;
}

static int peer_scope(struct lexer *l, struct fault_clause *c)
{
	uint64_t v;

	if (c->of_peer)
		return lex_fail(l, "a second peer in one clause");
	if (parse_address(l, &c->addr)) {
		c->of_peer = PEER_ADDRESS;
	} else {
		if (lex_number(l, 0, INT32_MAX, &v))
			return -EINVAL;
		c->of_peer = PEER_RANK;
		c->rank = (uint32_t)v;
	}
	lex_symbol(l, ':');
	return 0;
}

static int pe_scope(struct parser *p)
{
	uint64_t pe;

	if (p->have_pe)
		return lex_fail(&p->l, "a second pe in one clause");
	if (lex_number(&p->l, 0, INT32_MAX, &pe) || lex_expect(&p->l, ':'))
		return -EINVAL;
	p->have_pe = true;
	p->mine = p->rank && *p->rank == pe;
	return 0;
}

static int parse_scopes(struct parser *p, struct fault_clause *c)
{
	for (;;) {
		if (lex_word(&p->l, "pe")) {
			if (pe_scope(p))
				return -EINVAL;
		} else if (lex_word(&p->l, "qp")) {
			if (qp_scope(&p->l, c))
				return -EINVAL;
		} else if (lex_word(&p->l, "peer")) {
			if (peer_scope(&p->l, c))
				return -EINVAL;
		} else {
			return 0;
		}
	}
}

static int parse_whole(struct lexer *l, const struct fault_clause *c, const char *at)
{
	if (c->of_qp || c->of_peer)
		return lex_fail_at(l, at, "concerns the whole process, so neither qp nor peer may "
					  "come before it,");
	return 0;
}

/* ---- what happens ---- */

static int parse_window(struct lexer *l, struct fault_clause *c)
{
	if (lex_word(l, "at")) {
		if (lex_word(l, "wqe")) {
			if (lex_number(l, 0, UINT64_MAX, &c->at))
				return -EINVAL;
			c->at_wqe = true;
		} else {
			if (lex_time(l, &c->at))
				return -EINVAL;
			c->at_time = true;
		}
	}
	if (lex_word(l, "for")) {
		if (lex_time(l, &c->lasts))
			return -EINVAL;
		if (!c->lasts)
			return lex_fail(l, "expected more than no time before");
	}
	return 0;
}

static int parse_setting(struct lexer *l, struct fault_clause *c, unsigned *rules)
{
	const char *at = lex_place(l);

	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		if (!lex_word(l, settings[i].name))
			continue;
		if (c->set & 1u << settings[i].what)
			return lex_fail_at(l, at, "given twice in one clause");
		if ((settings[i].rules & WHOLE) && parse_whole(l, c, at))
			return -EINVAL;
		c->set |= 1u << settings[i].what;
		*rules |= settings[i].rules;
		return lex_expect(l, '=') ? -EINVAL : parse_value(l, i, c);
	}
	return lex_fail(l, expected_clause);
}

static int settings_clause(struct lexer *l, struct fault_clause *c)
{
	unsigned rules = 0;
	const char *at;

	c->kind = FAULT_SETTINGS;
	do {
		if (parse_setting(l, c, &rules))
			return -EINVAL;
	} while (lex_symbol(l, ','));
	at = lex_place(l);
	if (parse_window(l, c))
		return -EINVAL;
	if ((rules & FIXED) && (c->at_time || c->at_wqe || c->lasts))
		return lex_fail_at(l, at, "seed and first_* hold at all times: no at, no for");
	return 0;
}

static int wqe_clause(struct lexer *l, struct fault_clause *c)
{
	uint64_t v;

	if (lex_number(l, 0, UINT64_MAX, &c->wqe) || lex_expect(l, ':'))
		return -EINVAL;
	if (lex_word(l, "drop")) {
		c->kind = FAULT_MUTE;
		c->at_wqe = true;
		c->at = c->wqe;
		return 0;
	}
	if (!lex_word(l, "error"))
		return lex_fail(l, "expected error or drop");
	c->kind = FAULT_ERROR;
	if (lex_number(l, 1, 0xff, &v)) /* syndrome 0 is success */
		return -EINVAL;
	c->syndrome = (uint8_t)v;
	if (lex_expect(l, '/') || lex_number(l, 0, 0xff, &v))
		return -EINVAL;
	c->vendor = (uint8_t)v;
	return 0;
}

static int refuse_clause(struct lexer *l, struct fault_clause *c)
{
	c->kind = FAULT_REFUSE;
	for (unsigned i = 0; i < FAULT_OBJECTS; i++) {
		if (!lex_word(l, objects[i]))
			continue;
		c->object = (enum fault_object)i;
		c->after = lex_word(l, "after");
		return lex_number(l, c->after ? 0 : 1, UINT64_MAX, &c->n);
	}
	return lex_fail(l, "expected pd, mr, umem, cq, qp, srq, ah or uar");
}

static bool drop_all(struct lexer *l)
{
	const char *at = l->at;

	if (lex_word(l, "drop") && lex_word(l, "all"))
		return true;
	l->at = at;
	return false;
}

static int parse_event(struct lexer *l, struct fault_clause *c, enum fault_kind kind, const char *word,
		       const char *at)
{
	c->kind = kind;
	return parse_whole(l, c, at) || lex_expect_word(l, word) ? -EINVAL : parse_window(l, c);
}

static int parse_body(struct lexer *l, struct fault_clause *c)
{
	const char *at = lex_place(l);

	if (lex_word(l, "wqe")) {
		if (!c->of_qp)
			return lex_fail_at(l, at, "expected qp N or qp * before");
		return wqe_clause(l, c);
	}
	if (lex_word(l, "refuse"))
		return parse_whole(l, c, at) ? -EINVAL : refuse_clause(l, c);
	if (lex_word(l, "link"))
		return parse_event(l, c, FAULT_LINK, "down", at);
	if (lex_word(l, "gid"))
		return parse_event(l, c, FAULT_GIDS, "shuffle", at);
	if (drop_all(l) || lex_word(l, "mute")) {
		c->kind = FAULT_MUTE;
		return parse_window(l, c);
	}
	return settings_clause(l, c);
}

static int parse_clause(struct parser *p)
{
	struct fault_clause c = {0};
	const char *at = lex_place(&p->l);

	p->mine = true;
	p->have_pe = false;
	if (parse_scopes(p, &c) || parse_body(&p->l, &c))
		return -EINVAL;
	if (!p->mine)
		return 0;
	if (p->out->n == FAULT_MAX_CLAUSES)
		return lex_fail_at(&p->l, at, "more than 64 clauses");
	p->out->clause[p->out->n++] = c;
	return 0;
}

int faults_parse(const char *text, const uint32_t *rank, struct fault_plan *out, char *err,
		 size_t n)
{
	struct parser p = {.l = {.start = text, .at = text, .err = err, .err_n = n},
			   .rank = rank,
			   .out = out};

	if (err && n)
		err[0] = 0;
	out->n = 0;
	do {
		if (!*lex_place(&p.l)) /* nothing, or a ';' at the end */
			return 0;
		if (parse_clause(&p))
			return -EINVAL;
	} while (lex_symbol(&p.l, ';'));
	return *lex_place(&p.l) ? lex_fail(&p.l, "expected ';', ',', at or for") : 0;
}

/* The clauses for all ranks: none is left out for being another's. */
int faults_check(const char *text, char *err, size_t n)
{
	static struct fault_plan scratch;

	return faults_parse(text, NULL, &scratch, err, n);
}
