/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective of every type and scope, in place and not, over the world and over random teams,
 * against what a PE can work out for itself. No barrier stands between the calls: dest is filled before
 * and looked at behind, source is overwritten as soon as a call returns.
 * usage: coll [shake]: over teams of neighbours alone, the threads of a kernel in random order. */
#include "tests/multi/coll/coll.h"

/* ---- one call of each form, in a kernel ---- */

enum { THREAD, WARP, BLOCK, SCOPES };

/* Under CUDA, where nvcc would take minutes, programs of some kinds each. */
#if !defined(COLL_GATHERS) && !defined(COLL_ALLTOALLS) && !defined(COLL_REDUCES) && !defined(COLL_SCATTERS)
#define COLL_GATHERS
#define COLL_ALLTOALLS
#define COLL_REDUCES
#define COLL_SCATTERS
#endif

static int has_kind(int kind)
{
#ifdef COLL_GATHERS
	if (kind == BROADCAST || kind == COLLECT || kind == FCOLLECT)
		return 1;
#endif
#ifdef COLL_ALLTOALLS
	if (kind == ALLTOALL || kind == ALLTOALLS)
		return 1;
#endif
#ifdef COLL_REDUCES
	if (kind >= REDUCE && kind < REDUCESCATTER)
		return 1;
#endif
#ifdef COLL_SCATTERS
	if (kind == INSCAN || kind == EXSCAN || kind >= REDUCESCATTER)
		return 1;
#endif
	return 0;
}

#ifdef COLL_GATHERS
#define GATHER_CASES(pre, z, scope, suffix)                                                        \
	case BROADCAST * SCOPES + (scope):                                                         \
		return gdr_##pre##broadcast##z##suffix(a->team, d, s, a->n, a->root);              \
	case COLLECT * SCOPES + (scope):                                                           \
		return gdr_##pre##collect##z##suffix(a->team, d, s, a->n);                         \
	case FCOLLECT * SCOPES + (scope):                                                          \
		return gdr_##pre##fcollect##z##suffix(a->team, d, s, a->n);
#else
#define GATHER_CASES(pre, z, scope, suffix)
#endif
#ifdef COLL_ALLTOALLS
#define ALLTOALL_CASES(pre, z, scope, suffix)                                                      \
	case ALLTOALL * SCOPES + (scope):                                                          \
		return gdr_##pre##alltoall##z##suffix(a->team, d, s, a->n);                        \
	case ALLTOALLS * SCOPES + (scope):                                                         \
		return gdr_##pre##alltoalls##z##suffix(a->team, d, s, a->dst_step, a->src_step,    \
						       a->n);
#else
#define ALLTOALL_CASES(pre, z, scope, suffix)
#endif
/* Those that move data, also elements of a size alone. */
#define MOVE_CASES(pre, z, scope, suffix)                                                          \
	GATHER_CASES(pre, z, scope, suffix) ALLTOALL_CASES(pre, z, scope, suffix)

#ifdef COLL_SCATTERS
#define SCAN_CASES(name, scope, suffix)                                                            \
	case INSCAN * SCOPES + (scope):                                                            \
		return gdr_##name##_sum_inscan##suffix(a->team, d, s, a->n);                       \
	case EXSCAN * SCOPES + (scope):                                                            \
		return gdr_##name##_sum_exscan##suffix(a->team, d, s, a->n);
#define SCATTER_CASE(name, scope, suffix, OP, op)                                                  \
	case (REDUCESCATTER + OP) * SCOPES + (scope):                                              \
		return gdr_##name##_##op##_reducescatter##suffix(a->team, d, s, a->n);
#else
#define SCAN_CASES(name, scope, suffix)
#define SCATTER_CASE(name, scope, suffix, OP, op)
#endif
#ifdef COLL_REDUCES
#define REDUCE_CASE(name, scope, suffix, OP, op)                                                   \
	case (REDUCE + OP) * SCOPES + (scope):                                                     \
		return gdr_##name##_##op##_reduce##suffix(a->team, d, s, a->n);
#else
#define REDUCE_CASE(name, scope, suffix, OP, op)
#endif

#define CASES(name, scope, suffix)                                                                 \
	MOVE_CASES(name##_, , scope, suffix)                                                       \
	SCAN_CASES(name, scope, suffix)                                                            \
	OP_CASES(name, scope, suffix, SUM, sum)                                                    \
	OP_CASES(name, scope, suffix, PROD, prod)                                                  \
	OP_CASES(name, scope, suffix, MIN, min)                                                    \
	OP_CASES(name, scope, suffix, MAX, max)
#define OP_CASES(name, scope, suffix, OP, op)                                                      \
	REDUCE_CASE(name, scope, suffix, OP, op) SCATTER_CASE(name, scope, suffix, OP, op)
#define BIT_CASES(name, scope, suffix)                                                             \
	OP_CASES(name, scope, suffix, AND, and)                                                    \
	OP_CASES(name, scope, suffix, OR, or)                                                      \
	OP_CASES(name, scope, suffix, XOR, xor)

#define BIT_CALLS(name, T)                                                                         \
	GDR_DEVICE int bits_##name(const struct coll_args *a, T *d, const T *s)                    \
	{                                                                                          \
		switch (a->kind * SCOPES + a->scope) {                                             \
			BIT_CASES(name, THREAD, )                                                  \
			BIT_CASES(name, WARP, _warp)                                               \
			BIT_CASES(name, BLOCK, _block)                                             \
		default:                                                                           \
			return -1;                                                                 \
		}                                                                                  \
	}
#if defined(COLL_REDUCES) || defined(COLL_SCATTERS)
MULTI_INTEGER_TYPES(BIT_CALLS)
#define BITS(name, a, d, s) bits_##name(a, d, s)
#else
#define BITS(name, a, d, s) -1
#endif
#define bits_float(a, d, s) -1
#define bits_double(a, d, s) -1

#define CALLS_OF(name, T, cases, else_)                                                            \
	GDR_DEVICE int call_##name(const struct coll_args *a)                                      \
	{                                                                                          \
		T *d = (T *)a->dst;                                                                \
		const T *s = (const T *)a->src;                                                    \
                                                                                                   \
		switch (a->kind * SCOPES + a->scope) {                                             \
			cases default : return else_;                                              \
		}                                                                                  \
	}                                                                                          \
	MULTI_BODY void test_##name(const struct coll_args *a)                                     \
	{                                                                                          \
		EXPECT_OK(a->report, call_##name(a));                                              \
	}
#define CALLS(name, T)                                                                             \
	CALLS_OF(name, T, CASES(name, THREAD, ) CASES(name, WARP, _warp) CASES(name, BLOCK, _block), \
		 BITS(name, a, d, s))
MULTI_RMA_TYPES(CALLS)

#if (defined(COLL_GATHERS) || defined(COLL_ALLTOALLS)) && MULTI_FIRST_PART
#ifdef __CUDACC__ /* nvcc takes minutes for the others */
#define MOVED(X) X(mem, , mem, void, 1)
#else
#define MOVED(X)                                                                                   \
	X(mem, , mem, void, 1)                                                                     \
	X(half, half_, , gdr_half_t, 2)                                                            \
	X(bfloat16, bfloat16_, , gdr_bfloat16_t, 2)                                                \
	X(complexf, complexf_, , gdr_complexf_t, 8)                                                \
	X(complexd, complexd_, , gdr_complexd_t, 16)                                               \
	X(longdouble, longdouble_, , long double, sizeof(long double))                             \
	X(size8, , 8, void, 1)                                                                     \
	X(size16, , 16, void, 2)                                                                   \
	X(size32, , 32, void, 4)                                                                   \
	X(size64, , 64, void, 8)                                                                   \
	X(size128, , 128, void, 16)
#endif
#else
#define MOVED(X)
#endif
#define MOVE_CALLS(name, pre, z, T, size)                                                          \
	CALLS_OF(name, T,                                                                          \
		 MOVE_CASES(pre, z, THREAD, ) MOVE_CASES(pre, z, WARP, _warp)                      \
			 MOVE_CASES(pre, z, BLOCK, _block),                                        \
		 -1)
MOVED(MOVE_CALLS)

#define MOVE_NUMBER(name, pre, z, T, size) TYPE_##name,
#define MOVE_CASE(name, pre, z, T, size) MULTI_CASE(name, T)
enum { MULTI_RMA_TYPES(MULTI_NUMBER) MOVED(MOVE_NUMBER) TYPES };

GDR_KERNEL(collective, struct coll_args, a)
{
	if (gdr_thread_id() >= (a.scope == THREAD ? 1u : a.scope == WARP ? 32u : 1024u))
		return;
	switch (a.type) {
		MULTI_RMA_TYPES(MULTI_CASE)
		MOVED(MOVE_CASE)
	}
}

/* ---- a case: prepared, run, looked at ---- */

static struct coll_args a;
static uint8_t *area[2], *host, *image;
static uint64_t calls;

struct coll_type {
	const char *name;
	size_t size;
	int bits; /* has and, or, xor */
	void (*value)(void *at, uint64_t seed, int pe, size_t k);
	void (*op)(int op, void *acc, const void *x);
};

#define TYPE(tname, T)                                                                             \
	static void value_##tname(void *at, uint64_t seed, int pe, size_t k)                       \
	{                                                                                          \
		T v = COLL_VALUE(T, multi_hash(seed * 7919 + (uint64_t)pe * 1000003 + k));         \
                                                                                                   \
		memcpy(at, &v, sizeof(v));                                                         \
	}                                                                                          \
	static void op_##tname(int op, void *acc, const void *x)                                   \
	{                                                                                          \
		T p, q;                                                                            \
                                                                                                   \
		memcpy(&p, acc, sizeof(p));                                                        \
		memcpy(&q, x, sizeof(q));                                                          \
		p = COLL_OP(T, op, p, q);                                                          \
		memcpy(acc, &p, sizeof(p));                                                        \
	}                                                                                          \
	static const struct coll_type type_##tname = {#tname, sizeof(T), (T)0.5 == (T)0, value_##tname, op_##tname};
MULTI_RMA_TYPES(TYPE)

/* What member `of` brings to a collect. */
static size_t ragged(const struct coll_args *c, size_t n, int of)
{
	(void)c;
	return of % 3 == 1 ? 0 : n + 3 * (size_t)of;
}

/* Element k of what member i has in src. */
static void source(const struct coll_type *t, int i, size_t k, void *out)
{
	t->value(out, calls, a.pes[i], k);
}

/* The result of members lo .. hi - 1 for element k. */
static void folded(const struct coll_type *t, int op, int lo, int hi, size_t k, uint8_t *out)
{
	uint64_t x;

	memset(out, 0, t->size);
	for (int i = lo; i < hi; i++) {
		source(t, i, k, i == lo ? (void *)out : (void *)&x);
		if (i != lo)
			t->op(op, out, &x);
	}
}

/* Writes into the image what the call should change in dst. */
static void expect(const struct coll_type *t, size_t n, int own_block)
{
	size_t sz = t->size, at = 0, me = (size_t)a.me;

	for (int i = 0; i < a.members; i++) {
		size_t len = a.kind == COLLECT ? ragged(&a, n, i) : n;

		for (size_t k = 0; k < len; k++) {
			if (a.kind == COLLECT || a.kind == FCOLLECT)
				source(t, i, own_block ? (size_t)i * n + k : k,
				       image + (at + k) * sz);
			else if (a.kind == ALLTOALL)
				source(t, i, me * n + k, image + (at + k) * sz);
			else if (a.kind == ALLTOALLS)
				source(t, i, (me * n + k) * (size_t)a.src_step,
				       image + (at + k) * (size_t)a.dst_step * sz);
		}
		at += len;
	}
	for (size_t k = 0; k < n; k++) {
		if (a.kind == BROADCAST)
			source(t, a.root, k, image + k * sz);
		else if (a.kind == INSCAN || a.kind == EXSCAN)
			folded(t, SUM, 0, a.me + (a.kind == INSCAN), k, image + k * sz);
		else if (a.kind >= REDUCE && a.kind < REDUCESCATTER)
			folded(t, a.kind - REDUCE, 0, a.members, k, image + k * sz);
		else if (a.kind >= REDUCESCATTER)
			folded(t, a.kind - REDUCESCATTER, 0, a.members, me * n + k,
			       image + (own_block ? me * n + k : k) * sz);
	}
}

static void look(const struct coll_type *t, const uint8_t *dst, size_t n)
{
	CHECK_OK(gdr_memcpy(host, dst, COLL_AREA));
	for (size_t i = 0; i < COLL_AREA; i++)
		if (host[i] != image[i])
			multi_fail(__FILE__, __LINE__,
				   "call %llu: kind %d of %s, scope %d, team %d (%d of %d), root %d, %zu "
				   "elements, in place %d: byte %zu is %02x, not %02x",
				   (unsigned long long)calls, a.kind, t->name, a.scope, a.team, a.me,
				   a.members, a.root, n, a.in_place, i, host[i], image[i]);
}

/* Fills src with the own values, dst with what must stay, and the arguments. */
static uint8_t *prepare(const struct coll_type *t, size_t n)
{
	uint8_t *src = area[0], *dst = area[1];
	int own_block = a.in_place == 2;

	for (size_t k = 0; k < COLL_AREA / t->size; k++)
		t->value(host + k * t->size, calls, multi_pe, k);
	CHECK_OK(gdr_memcpy(src, host, COLL_AREA));
	memset(image, MULTI_POISON, COLL_AREA);
	if (a.in_place)
		memcpy(image, host, COLL_AREA);
	CHECK_OK(gdr_memcpy(dst, image, COLL_AREA));
	expect(t, n, own_block);
	a.dst = dst;
	a.src = a.in_place ? dst : src;
	if (own_block && a.kind == FCOLLECT)
		a.src = dst + (size_t)a.me * n * t->size;
	if (own_block && a.kind >= REDUCESCATTER)
		a.dst = dst + (size_t)a.me * n * t->size;
	a.n = a.kind == COLLECT ? ragged(&a, n, a.me) : n;
	return dst;
}

/* 1: dst is src. 2: dst or src is the own block of the other. */
static int may_be_in_place(int kind, int how)
{
	if (how == 1)
		return kind == BROADCAST || kind >= INSCAN;
	return how == 0 || kind == FCOLLECT || kind >= REDUCESCATTER;
}

typedef int runner(void);

static void called(const struct coll_type *t, runner *run, size_t n)
{
	prepare(t, n);
	run();
	look(t, area[1], n);
	CHECK_OK(gdr_memcpy(area[0], image, 64)); /* source is free */
}

static void one(const struct coll_type *t, runner *run, int kind, int scope)
{
	static const size_t most[] = {3, 40, 300};
	uint64_t h = multi_hash(++calls * 31);
	size_t n = 1 + h % most[(h >> 20) % 3];

	a.kind = kind;
	a.scope = scope;
	a.root = (int)((h >> 32) % (uint64_t)a.members);
	a.dst_step = 1 + (ptrdiff_t)((h >> 40) % 3);
	a.src_step = 1 + (ptrdiff_t)((h >> 44) % 3);
	a.in_place = (int)((h >> 48) % 3);
	if (!may_be_in_place(kind, a.in_place))
		a.in_place = 0;
	called(t, run, n);
	if (a.in_place && a.members == 1) { /* may have done nothing */
		a.in_place = 0;
		called(t, run, n);
	}
}

#define RUNNER(tname, T)                                                                           \
	static int run_##tname(void)                                                               \
	{                                                                                          \
		a.type = TYPE_##tname;                                                             \
		RUN(collective, 1, a.scope == THREAD ? 1 : 64, &a);                                \
		return 0;                                                                          \
	}
MULTI_RMA_TYPES(RUNNER)

static void all_of(const struct coll_type *t, runner *run, int kinds)
{
	for (int kind = 0; kind < kinds; kind++) {
		int op = kind >= REDUCESCATTER ? kind - REDUCESCATTER : kind - REDUCE;

		if (!has_kind(kind) || (kind >= REDUCE && op >= AND && !t->bits))
			continue;
		for (int scope = 0; scope < SCOPES; scope++)
			one(t, run, kind, scope);
	}
}

static void every_type(void)
{
#define ALL_OF(tname, T) all_of(&type_##tname, run_##tname, KINDS);
	MULTI_RMA_TYPES(ALL_OF)
}

static void set_team(gdr_team_t team)
{
	a.team = team;
	a.me = gdr_host_team_my_pe(team);
	a.members = gdr_host_team_n_pes(team);
	for (int i = 0; i < a.members; i++)
		a.pes[i] = gdr_host_team_translate_pe(team, i, GDR_TEAM_WORLD);
}

#define MOVE_RUNNER(name, pre, z, T, size) RUNNER(name, T)
MOVED(MOVE_RUNNER)

static size_t moved_size; /* of what value_moved makes */

__attribute__((unused)) static void value_moved(void *at, uint64_t seed, int pe, size_t k)
{
	for (size_t i = 0; i < moved_size; i++)
		((uint8_t *)at)[i] = multi_byte(seed * 7919 + (uint64_t)pe * 1000003 + k, i);
}

static void untyped(void)
{
#define ALL_MOVES(name, pre, z, T, bytes)                                                          \
	{                                                                                          \
		const struct coll_type t = {#name, bytes, 0, value_moved, NULL};                   \
                                                                                                   \
		moved_size = t.size;                                                               \
		all_of(&t, run_##name, INSCAN);                                                    \
	}
	MOVED(ALL_MOVES)
}

/* ---- long and short ones of one type, over teams ---- */

static void nothing(const struct coll_type *t, runner *run)
{
	for (a.kind = 0; a.kind < KINDS; a.kind++) {
		if (!has_kind(a.kind))
			continue;
		a.scope = a.kind % SCOPES;
		a.in_place = 0;
		a.root = 0;
		prepare(t, 0);
		a.n = 0;
		memset(image, MULTI_POISON, COLL_AREA);
		run();
		look(t, area[1], 0);
	}
}

static void no_elements(void)
{
#define NO_ELEMENTS(tname, T)                                                                      \
	if (!strcmp(#tname, "int"))                                                                \
		nothing(&type_##tname, run_##tname);
	MULTI_RMA_TYPES(NO_ELEMENTS)
}

static int of_teams(const char *name, int bytes)
{
	return !strcmp(name, "long") || !strcmp(name, "float") || (bytes && !strcmp(name, "uint8"));
}

#define OVER_TEAM(tname, T)                                                                        \
	if (of_teams(#tname, bytes))                                                               \
		all_of(&type_##tname, run_##tname, KINDS);
static void over_team(const int *list, int n, int bytes)
{
	uint64_t save = calls;
	gdr_team_t team;

	CHECK_OK(gdr_team_create(GDR_TEAM_WORLD, list, n, NULL, 0, &team));
	if (team != GDR_TEAM_INVALID) {
		set_team(team);
		MULTI_RMA_TYPES(OVER_TEAM)
		CHECK_OK(gdr_team_destroy(team));
	}
	calls = save + 1000; /* the same on all */
}

static void over_teams(void)
{
	int list[COLL_MAX_PES];

	for (uint64_t seed = 1; seed <= 6; seed++)
		over_team(list, coll_choose(seed, list, multi_n, seed == 1 ? multi_n : 0), 0);
}

/* Each PE begins one: so nodes of which one member is left stand first, amid the others and last. */
static void over_neighbours(void)
{
	int list[COLL_MAX_PES];

	for (int first = 0; first < multi_n; first++) {
		for (int i = 0; i < multi_n; i++)
			list[i] = (first + i) % multi_n;
		over_team(list, multi_n - first % 3 > 1 ? multi_n - first % 3 : multi_n, 1);
	}
}

static void rest(void)
{
	untyped();
	no_elements();
	over_teams();
}

static void shake(void)
{
#ifndef __CUDACC__
	gdri_hd_shake(multi_hash((uint64_t)multi_pe + 1));
#endif
	over_neighbours();
}

int main(int argc, char **argv)
{
	multi_begin();
	CHECK(multi_n <= COLL_MAX_PES);
	a.report = multi_report_new();
	for (int i = 0; i < 2; i++)
		area[i] = (uint8_t *)gdr_malloc(COLL_AREA);
	host = (uint8_t *)malloc(COLL_AREA);
	image = (uint8_t *)malloc(COLL_AREA);
	CHECK(area[0] && area[1] && host && image);
	if (argc > 1 && !strcmp(argv[1], "shake")) {
		shake();
	} else {
		set_team(GDR_TEAM_WORLD);
		every_type();
		rest();
	}
	free(host);
	free(image);
	multi_shared_free(a.report);
	return multi_end("coll");
}
