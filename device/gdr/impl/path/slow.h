/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path of an operation: what it is where not all PEs are mapped. Its entries are out of line under CUDA,
 * called by the ABI, and write the record (op.h) in their own frame: in the kernel's, its address would be found before
 * each access, also where the slow path is not taken. On the host device they are inline, and the record disappears. */
#ifndef GDRI_SLOW_H
#define GDRI_SLOW_H

#include <gdr/impl/arch/unit.h>

/* What callers know of an operation, in one register: a, b: scope and nbi, or size and kind. */
#define GDRI_FORM(op, a, b) ((uint32_t)(op) | (uint32_t)(a) << 8 | (uint32_t)(b) << 16)
#define GDRI_FORM_OP(form) ((form) & 0xffu)
#define GDRI_FORM_A(form) ((form) >> 8 & 0xffu)
#define GDRI_FORM_B(form) ((form) >> 16 & 0xffu)

#if GDRI_LINKED
#include <gdr/impl/arch/library.h>
#else
#include <gdr/impl/path/xfer.h>

/* A word to a PE: p, signals. */
GDRI_SLOW int gdri_slow_word(uint32_t form, void *remote, uint64_t value, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_operation o;

	GDRI_BY_ABI(gdri_slow_word);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	o = gdri_op_scalar(GDRI_FORM_OP(form), (int)GDRI_FORM_B(form), GDRI_FORM_A(form), remote, value, pe, q);
	if (!GDRI_SHORT_WAYS)
		return gdri_xfer_word(dev, &o);
	return o.op == GDRI_P ? gdri_xfer_store(dev, &o) : gdri_xfer_signal(dev, &o);
}

/* Put, get. */
GDRI_SLOW int gdri_slow_memory(uint32_t form, const void *remote, const void *local, size_t len, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_operation o;

	GDRI_BY_ABI(gdri_slow_memory);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	o = gdri_op_memory(GDRI_FORM_OP(form), (int)GDRI_FORM_A(form), (int)GDRI_FORM_B(form), remote, local, len, pe,
			   q);
	return gdri_xfer_memory(dev, &o);
}

/* Those that bring the bulk copy engine its memory. */
GDRI_SLOW int gdri_slow_bulk(uint32_t form, const void *remote, const void *local, size_t len, void *stage,
			     size_t bytes, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_operation o;

	GDRI_BY_ABI(gdri_slow_bulk);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	o = gdri_op_memory(GDRI_FORM_OP(form), (int)GDRI_FORM_A(form), (int)GDRI_FORM_B(form), remote, local, len, pe,
			   q);
	return gdri_xfer_bulk(dev, &o, stage, bytes);
}

/* Put with signal; the form is that of its put. */
GDRI_SLOW int gdri_slow_put_signal(uint32_t form, void *dst, const void *src, size_t len, uint64_t *sig, uint64_t value,
				   int kind, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_operation o;

	GDRI_BY_ABI(gdri_slow_put_signal);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	o = gdri_op_memory(GDRI_PUT_SIGNAL, (int)GDRI_FORM_A(form), (int)GDRI_FORM_B(form), dst, src, len, pe, q);
	o.sig = sig;
	o.value = value;
	o.kind = (uint8_t)kind;
	return gdri_xfer_memory(dev, &o);
}

/* Atomics without result. */
GDRI_SLOW int gdri_slow_atomic(uint32_t form, void *remote, uint64_t value, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_operation o;

	GDRI_BY_ABI(gdri_slow_atomic);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	o = gdri_op_scalar(GDRI_AMO, (int)GDRI_FORM_B(form), GDRI_FORM_A(form), remote, value, pe, q);
	o.compare = 0;
	return gdri_xfer_atomic(dev, &o);
}

/* An atomic that brings the old value, which goes to `local` by the next quiet. */
GDRI_SLOW int gdri_slow_fetch_nbi(uint32_t form, void *local, void *remote, uint64_t value, uint64_t compare, int pe,
				  uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_operation o;

	GDRI_BY_ABI(gdri_slow_fetch_nbi);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	o = gdri_op_scalar(GDRI_FETCH_AMO, (int)GDRI_FORM_B(form), GDRI_FORM_A(form), remote, value, pe, q);
	o.compare = compare;
	o.local = (uint8_t *)local;
	o.nbi = 1;
	return gdri_xfer_atomic(dev, &o);
}

/* g, and atomics that bring the old value, to o->result. */
GDR_DEVICE int gdri_slow_fetch_to(struct gdri_operation *o, uint32_t form, const void *remote, uint64_t value,
				  uint64_t compare, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	*o = gdri_op_scalar(GDRI_FORM_OP(form), (int)GDRI_FORM_B(form), GDRI_FORM_A(form), remote, value, pe, q);
	o->compare = compare;
	if (!GDRI_SHORT_WAYS)
		return gdri_xfer_fetch(dev, o);
	return o->op == GDRI_G ? gdri_xfer_load(dev, o) : gdri_xfer_atomic(dev, o);
}

/* *result is 0 on failure. */
GDRI_SLOW int gdri_slow_fetch(uint32_t form, const void *remote, uint64_t value, uint64_t compare, int pe, uint32_t q,
			      uint64_t *result)
{
	struct gdri_operation o;
	int ret;

	GDRI_BY_ABI(gdri_slow_fetch);
	ret = gdri_slow_fetch_to(&o, form, remote, value, compare, pe, q);
	*result = gdri_likely(!ret) ? o.result : 0;
	return ret;
}

/* gdri_slow_fetch for who returns the value alone: a quiet says the status. */
GDRI_SLOW uint64_t gdri_slow_value(uint32_t form, const void *remote, uint64_t value, uint64_t compare, int pe,
				   uint32_t q)
{
	struct gdri_operation o;
	int ret;

	GDRI_BY_ABI(gdri_slow_value);
	ret = gdri_slow_fetch_to(&o, form, remote, value, compare, pe, q);
	if (gdri_likely(!ret))
		return o.result;
	if (gdri_dev())
		gdri_latch(gdri_dev(), ret);
	return 0;
}
#endif

#endif
