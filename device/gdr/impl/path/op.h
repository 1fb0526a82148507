/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation as the slow path hands it on: one record, by pointer. Each step reads of it what it needs: under CUDA a
 * value that waits for its step in a register is one that the whole kernel pays for. */
#ifndef GDRI_OPERATION_H
#define GDRI_OPERATION_H

#include <gdr/impl/arch/dev.h>
#include <gdr/impl/arch/scope.h>

/* What an operation does not need is not set. C99 has no unions without a name, of which -Wpedantic speaks. */
struct gdri_operation {
	uint8_t *remote;  /* the symmetric object */
	uint8_t *local;	  /* the caller's: source, destination, where an old value goes that is not waited for */
	GDRI_UNNAMED union {
		uint64_t len;	  /* bytes of both */
		uint64_t compare; /* of a compare-and-swap, which has none */
	};
	uint64_t value; /* of a scalar, an atomic, a signal */
	GDRI_UNNAMED union {
		uint64_t *sig;	 /* GDRI_PUT_SIGNAL: the signal word */
		uint64_t result; /* of what fetches */
	};
	int32_t pe;
	uint32_t queue; /* how far behind the block's own it stands (gdri_qp_to) */
	uint8_t op;	/* GDRI_PUT to GDRI_FETCH_AMO */
	uint8_t scope;
	uint8_t nbi;
	uint8_t size; /* of a scalar or an atomic */
	uint8_t kind; /* of an atomic or a signal: enum gdri_amo, or GDRI_AMO_COMBINED */
};

#define GDRI_AMO_COMBINED 0xffu /* GDRI_AMO_COMBINE, with its code in `compare` */

GDR_DEVICE struct gdri_operation gdri_op_memory(uint32_t op, int scope, int nbi, const void *remote, const void *local,
						size_t len, int pe, uint32_t q)
{
	struct gdri_operation o;

	o.remote = (uint8_t *)(uintptr_t)remote;
	o.local = (uint8_t *)(uintptr_t)local;
	o.len = len;
	o.pe = pe;
	o.queue = q;
	o.op = (uint8_t)op;
	o.scope = (uint8_t)scope;
	o.nbi = (uint8_t)nbi;
	return o;
}

/* One of up to 8 bytes, of one thread. */
GDR_DEVICE struct gdri_operation gdri_op_scalar(uint32_t op, int kind, uint32_t size, const void *remote,
						uint64_t value, int pe, uint32_t q)
{
	struct gdri_operation o;

	o.remote = (uint8_t *)(uintptr_t)remote;
	o.value = value;
	o.pe = pe;
	o.queue = q;
	o.op = (uint8_t)op;
	o.scope = GDRI_THREAD;
	o.nbi = 0;
	o.size = (uint8_t)size;
	o.kind = (uint8_t)kind;
	return o;
}

/* The word that an operation of one word writes: of a put with signal that is the signal. */
GDR_DEVICE uint64_t *gdri_op_word(const struct gdri_operation *o)
{
	return o->op == GDRI_PUT_SIGNAL ? o->sig : (uint64_t *)(void *)o->remote;
}

/* Whether operations have short ways in front of what is out of line: not under CUDA, where the whole slow path is. */
#ifndef GDRI_SHORT_WAYS /* a test takes them out */
#ifdef __CUDACC__
#define GDRI_SHORT_WAYS 0
#else
#define GDRI_SHORT_WAYS 1
#endif
#endif
#if GDRI_SHORT_WAYS
#define GDRI_AWAY GDRI_NOINLINE
#else
#define GDRI_AWAY GDR_DEVICE
#endif

/* What a short way leaves is out of line, and gets a copy of the record: gcc keeps one in registers as long as nobody
 * is handed its address, and makes the copy only where the call is made. Under CUDA it lies in memory anyway. */
typedef int (*gdri_op_fn)(struct gdri_dev *dev, struct gdri_operation *o);

GDR_DEVICE void gdri_op_copy_head(struct gdri_operation *to, const struct gdri_operation *o)
{
	to->remote = o->remote;
	to->pe = o->pe;
	to->queue = o->queue;
	to->op = o->op;
	to->scope = o->scope;
	to->nbi = o->nbi;
}

GDR_DEVICE int gdri_op_away_memory(gdri_op_fn fn, struct gdri_dev *dev, struct gdri_operation *o)
{
	struct gdri_operation away;

	if (!GDRI_SHORT_WAYS)
		return fn(dev, o);
	gdri_op_copy_head(&away, o);
	away.local = o->local;
	away.len = o->len;
	if (o->op == GDRI_PUT_SIGNAL) {
		away.sig = o->sig;
		away.value = o->value;
		away.kind = o->kind;
	}
	return fn(dev, &away);
}

GDR_DEVICE int gdri_op_away_scalar(gdri_op_fn fn, struct gdri_dev *dev, struct gdri_operation *o)
{
	int ret, fetches = o->op == GDRI_G || o->op == GDRI_AMO || o->op == GDRI_FETCH_AMO;
	struct gdri_operation away;

	if (!GDRI_SHORT_WAYS)
		return fn(dev, o);
	gdri_op_copy_head(&away, o);
	away.value = o->value;
	away.size = o->size;
	away.kind = o->kind;
	if (fetches && o->op != GDRI_G)
		away.compare = o->compare;
	if (o->nbi)
		away.local = o->local;
	ret = fn(dev, &away);
	if (fetches)
		o->result = away.result;
	return ret;
}

#endif
