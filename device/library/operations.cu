// SPDX-License-Identifier: BSD-3-Clause
/* All but collectives of data, of few registers (device/CMakeLists.txt). One file, for posting and the search for who
 * is to blame stand in each: nvlink shows the host's linker every member of an archive. */
#include "device/library/part.h"

#include <gdr/impl/wait/unseen.h>

__device__ int gdri_lib_word(uint32_t form, void *remote, uint64_t value, int pe, uint32_t q)
{
	return gdri_slow_word(form, remote, value, pe, q);
}

__device__ int gdri_lib_atomic(uint32_t form, void *remote, uint64_t value, int pe, uint32_t q)
{
	return gdri_slow_atomic(form, remote, value, pe, q);
}

__device__ int gdri_lib_fetch_nbi(uint32_t form, void *local, void *remote, uint64_t value, uint64_t compare, int pe,
				  uint32_t q)
{
	return gdri_slow_fetch_nbi(form, local, remote, value, compare, pe, q);
}

__device__ int gdri_lib_fetch(uint32_t form, const void *remote, uint64_t value, uint64_t compare, int pe, uint32_t q,
			      uint64_t *result)
{
	return gdri_slow_fetch(form, remote, value, compare, pe, q, result);
}

__device__ uint64_t gdri_lib_value(uint32_t form, const void *remote, uint64_t value, uint64_t compare, int pe,
				   uint32_t q)
{
	return gdri_slow_value(form, remote, value, compare, pe, q);
}

__device__ int gdri_lib_combine(uint32_t code, void *dst, uint64_t operand, int pe, uint32_t q, uint64_t *old)
{
	return gdri_amo_fetch_combine(code, dst, operand, pe, q, old);
}

__device__ int gdri_lib_signal_refuse(uint32_t op, const uint64_t *sig, int sig_op, int pe)
{
	return gdri_signal_op_refuse(gdri_dev(), op, sig, sig_op, pe);
}

__device__ int gdri_lib_fence(const struct gdri_ctx *c, int pe)
{
	return gdri_slow_fence(c, pe);
}

__device__ int gdri_lib_quiet(const struct gdri_ctx *c, int pe)
{
	return gdri_slow_quiet(gdri_dev(), c, pe);
}

__device__ int gdri_lib_take_latched(void)
{
	return gdri_take_latched(gdri_dev());
}

__device__ int gdri_lib_wait(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value, int peer,
			     uint32_t op)
{
	return gdri_wait_until(p, size, is_signed, cmp, value, peer, op);
}

__device__ int gdri_lib_signal_wait(const uint64_t *sig, int cmp, uint64_t value, int peer, uint64_t limit_ns,
				    uint64_t *seen)
{
	return gdri_signal_wait(sig, cmp, value, peer, limit_ns, seen);
}

__device__ int gdri_lib_wait_flush(uint32_t op)
{
	return gdri_wait_flush_any(gdri_dev(), op);
}

__device__ int gdri_lib_set_wait(struct gdri_set *s, int mode, uint64_t limit_ns, size_t *n)
{
	return gdri_set_wait(s, mode, limit_ns, n);
}

__device__ size_t gdri_lib_set_test(struct gdri_set *s, int mode)
{
	return gdri_set_test(s, mode);
}

__device__ size_t gdri_lib_set_wait_value(struct gdri_set *s, int mode, uint64_t limit_ns)
{
	return gdri_set_wait_value(s, mode, limit_ns);
}

__device__ int gdri_lib_lock_set(long *lock)
{
	return gdri_lock_set(lock);
}

__device__ int gdri_lib_lock_test(long *lock)
{
	return gdri_lock_test(lock);
}

__device__ int gdri_lib_lock_clear(long *lock)
{
	return gdri_lock_clear(lock);
}

__device__ void gdri_lib_note_unseen(int status)
{
	gdri_note_unseen(gdri_dev(), status);
}

__device__ int gdri_lib_barrier(int scope, int quiet)
{
	return gdri_barrier_scope(scope, quiet);
}

__device__ int gdri_lib_put_signal(uint32_t form, void *dst, const void *src, size_t len, uint64_t *sig, uint64_t value,
				   int op, int pe, uint32_t q)
{
	return gdri_put_signal(GDRI_THREAD, (int)GDRI_FORM_B(form), dst, src, len, sig, value, op, pe, q);
}

__device__ int gdri_lib_team_my_pe(gdr_team_t team)
{
	return gdr_team_my_pe(team);
}

__device__ int gdri_lib_team_n_pes(gdr_team_t team)
{
	return gdr_team_n_pes(team);
}

__device__ int gdri_lib_team_translate_pe(gdr_team_t src_team, int src_pe, gdr_team_t dest_team)
{
	return gdr_team_translate_pe(src_team, src_pe, dest_team);
}

__device__ void *gdri_lib_team_ptr(gdr_team_t team, const void *dest, int pe)
{
	return gdr_team_ptr(team, dest, pe);
}

__device__ int gdri_lib_team_barrier(int scope, gdr_team_t team, int quiet)
{
	return gdri_team_barrier(scope, team, quiet);
}

__device__ int gdri_lib_grid_meet(void)
{
	return gdri_grid_meet();
}

/* ---- puts and gets of one thread ---- */

__device__ int gdri_lib_memory(uint32_t form, void *remote, void *local, size_t len, int pe, uint32_t q)
{
	return GDRI_FORM_OP(form) == GDRI_PUT ? gdri_put(GDRI_THREAD, (int)GDRI_FORM_B(form), remote, local, len, pe, q)
					      : gdri_get(GDRI_THREAD, (int)GDRI_FORM_B(form), local, remote, len, pe, q);
}

/* ---- what warps and blocks move together, and what lies in steps ---- */

/* call(scope): with the scope as a constant. */
#define BY_SCOPE(scope, call) ((scope) == GDRI_BLOCK ? call(GDRI_BLOCK) : call(GDRI_WARP))

__device__ int gdri_lib_group_memory(uint32_t form, void *remote, void *local, size_t len, int pe, uint32_t q)
{
	int nbi = (int)GDRI_FORM_B(form), scope = (int)GDRI_FORM_A(form);

#define PUT(scope) gdri_put(scope, nbi, remote, local, len, pe, q)
#define GET(scope) gdri_get(scope, nbi, local, remote, len, pe, q)
	return GDRI_FORM_OP(form) == GDRI_PUT ? BY_SCOPE(scope, PUT) : BY_SCOPE(scope, GET);
}

__device__ int gdri_lib_group_put_signal(uint32_t form, void *dst, const void *src, size_t len, uint64_t *sig,
					 uint64_t value, int op, int pe, uint32_t q)
{
	int nbi = (int)GDRI_FORM_B(form), scope = (int)GDRI_FORM_A(form);

#define PUT_SIGNAL(scope) gdri_put_signal(scope, nbi, dst, src, len, sig, value, op, pe, q)
	return BY_SCOPE(scope, PUT_SIGNAL);
}

__device__ int gdri_lib_bulk(uint32_t form, void *remote, void *local, size_t len, void *stage, size_t bytes, int pe,
			     uint32_t q)
{
	int nbi = (int)GDRI_FORM_B(form), scope = (int)GDRI_FORM_A(form);

	return GDRI_FORM_OP(form) == GDRI_PUT ? gdri_put_bulk(scope, nbi, remote, local, len, stage, bytes, pe, q)
					      : gdri_get_bulk(scope, nbi, local, remote, len, stage, bytes, pe, q);
}

__device__ int gdri_lib_strided(uint32_t form, void *dst, const void *src, int64_t dstep, int64_t sstep, size_t len,
				size_t n, int pe, uint32_t q)
{
	return gdri_strided(GDRI_FORM_OP(form), (int)GDRI_FORM_A(form), (int)GDRI_FORM_B(form), dst, src, dstep, sstep,
			    len, n, pe, q);
}
