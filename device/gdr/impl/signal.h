/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of put_signal and of the operations on signal words. */
#ifndef GDRI_SIGNAL_H
#define GDRI_SIGNAL_H

#include <gdr/impl/wait.h>
#include <gdr/impl/xfer.h>

GDR_DEVICE_COLD int gdri_signal_op_refuse(struct gdri_dev *dev, uint32_t op, const uint64_t *sig,
					  int sig_op, int pe)
{
	GDRI_BY_ABI(gdri_signal_op_refuse);
	return gdri_error_arg(dev, op, -GDR_EINVAL, pe, sig, (uint64_t)sig_op, GDRI_ARG_OTHER,
			      0, 0);
}

GDRI_GENERAL int gdri_put_signal_any(int scope, int nbi, void *dst, const void *src, size_t len,
				     uint64_t *sig, uint64_t value, int op, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (gdri_unlikely(op != GDR_SIGNAL_SET && op != GDR_SIGNAL_ADD))
		return gdri_signal_op_refuse(dev, GDRI_PUT_SIGNAL, sig, op, pe);
	return gdri_xfer_write_signal(dev, scope, nbi, dst, src, len, sig, value,
				      op == GDR_SIGNAL_ADD, pe);
}

GDR_DEVICE int gdri_put_signal(int scope, int nbi, void *dst, const void *src, size_t len,
			       uint64_t *sig, uint64_t value, int op, int pe)
{
	if (gdri_direct() && (op == GDR_SIGNAL_SET || op == GDR_SIGNAL_ADD)) {
		gdri_p2p_copy(scope, gdri_direct_at(dst, pe), src, len);
		if (!gdri_scope_rank(scope))
			gdri_p2p_signal((uint64_t *)gdri_direct_at(sig, pe), value,
					op == GDR_SIGNAL_ADD);
		return 0;
	}
	if (gdri_direct())
		return gdri_signal_op_refuse(gdri_dev(), GDRI_PUT_SIGNAL, sig, op, pe);
	return GDRI_ELSE(
		gdri_put_signal_any(scope, nbi, dst, src, len, sig, value, op, pe));
}

#define GDRI_PUT_SIGNAL_SCOPE(suffix, scope)                                                       \
	GDR_DEVICE int gdr_put_signal##suffix(void *dst, const void *src, size_t len,              \
					      uint64_t *sig, uint64_t value, int op, int pe)       \
	{                                                                                          \
		return gdri_put_signal(scope, 0, dst, src, len, sig, value, op, pe);               \
	}                                                                                          \
	GDR_DEVICE int gdr_put_signal_nbi##suffix(void *dst, const void *src, size_t len,          \
						  uint64_t *sig, uint64_t value, int op, int pe)   \
	{                                                                                          \
		return gdri_put_signal(scope, 1, dst, src, len, sig, value, op, pe);               \
	}
GDRI_PUT_SIGNAL_SCOPE(, GDRI_THREAD)
GDRI_PUT_SIGNAL_SCOPE(_warp, GDRI_WARP)
GDRI_PUT_SIGNAL_SCOPE(_block, GDRI_BLOCK)

GDRI_GENERAL int gdri_signal_op_any(uint64_t *sig, uint64_t value, int op, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (gdri_unlikely(op != GDR_SIGNAL_SET && op != GDR_SIGNAL_ADD))
		return gdri_signal_op_refuse(dev, GDRI_SIGNAL, sig, op, pe);
	return gdri_xfer_signal_op(dev, sig, value, op == GDR_SIGNAL_ADD, pe);
}

GDR_DEVICE int gdr_signal_op(uint64_t *sig, uint64_t value, int op, int pe)
{
	if (gdri_direct() && (op == GDR_SIGNAL_SET || op == GDR_SIGNAL_ADD)) {
		gdri_p2p_signal_op((uint64_t *)gdri_direct_at(sig, pe), value,
				   op == GDR_SIGNAL_ADD);
		return 0;
	}
	if (gdri_direct())
		return gdri_signal_op_refuse(gdri_dev(), GDRI_SIGNAL, sig, op, pe);
	return GDRI_ELSE(gdri_signal_op_any(sig, value, op, pe));
}

GDR_DEVICE uint64_t gdr_signal_fetch(const uint64_t *sig)
{
	return gdri_ld_acquire_sys_u64(sig); /* pairs with the release of the signal */
}

GDR_DEVICE int gdr_signal_wait_until(const uint64_t *sig, int cmp, uint64_t value)
{
	return gdri_wait_until(sig, 8, 0, cmp, value, -1, GDRI_SIGNAL_WAIT);
}

GDR_DEVICE int gdr_signal_wait_until_from(const uint64_t *sig, int cmp, uint64_t value, int pe)
{
	return gdri_wait_until(sig, 8, 0, cmp, value, pe, GDRI_SIGNAL_WAIT);
}

#endif
