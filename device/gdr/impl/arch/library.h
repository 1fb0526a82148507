/* SPDX-License-Identifier: BSD-3-Clause */
/* What libgdr_device.a holds for programs of relocatable device code (nvcc -rdc=true) that link it and are compiled
 * with GDR_DEVICE_LIBRARY: all that stands out of line elsewhere, compiled once, of few registers. device/library
 * defines it by the bodies that other programs have in their own units. What is quick on mapped memory stays in the
 * caller's code (api/linked.h). docs/adr/0010-a-device-library-for-relocatable-code.md. */
#ifndef GDRI_LIBRARY_H
#define GDRI_LIBRARY_H

/* The unit calls libgdr_device.a for what stands out of line. In the other ways to compile the library's
 * code is not the unit's: those have their own. */
#if defined(GDR_DEVICE_LIBRARY) && defined(__CUDACC_RDC__) && !defined(GDR_CHECKED) && \
	!defined(GDR_NO_QUEUES) && !defined(GDR_ANY_ADDRESS)
#define GDRI_LINKED 1
#else
#define GDRI_LINKED 0
#endif

#if GDRI_LINKED || defined(GDRI_LIBRARY_PART)
#include <gdr/team.h>

struct gdri_set;

extern "C" {
/* Words, and what orders. form: path/slow.h. */
__device__ int gdri_lib_word(uint32_t form, void *remote, uint64_t value, int pe, uint32_t q);
__device__ int gdri_lib_atomic(uint32_t form, void *remote, uint64_t value, int pe, uint32_t q);
__device__ int gdri_lib_fetch_nbi(uint32_t form, void *local, void *remote, uint64_t value, uint64_t compare, int pe,
				  uint32_t q);
__device__ int gdri_lib_fetch(uint32_t form, const void *remote, uint64_t value, uint64_t compare, int pe, uint32_t q,
			      uint64_t *result);
__device__ uint64_t gdri_lib_value(uint32_t form, const void *remote, uint64_t value, uint64_t compare, int pe,
				   uint32_t q);
__device__ int gdri_lib_combine(uint32_t code, void *dst, uint64_t operand, int pe, uint32_t q, uint64_t *old);
__device__ int gdri_lib_signal_refuse(uint32_t op, const uint64_t *sig, int sig_op, int pe);
__device__ int gdri_lib_fence(const struct gdri_ctx *c, int pe);
__device__ int gdri_lib_quiet(const struct gdri_ctx *c, int pe);
__device__ int gdri_lib_take_latched(void);
__device__ int gdri_lib_wait(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value, int peer,
			     uint32_t op);
__device__ int gdri_lib_signal_wait(const uint64_t *sig, int cmp, uint64_t value, int peer, uint64_t limit_ns,
				    uint64_t *seen);
__device__ int gdri_lib_wait_flush(uint32_t op);
__device__ int gdri_lib_set_wait(struct gdri_set *s, int mode, uint64_t limit_ns, size_t *n);
__device__ size_t gdri_lib_set_test(struct gdri_set *s, int mode);
__device__ size_t gdri_lib_set_wait_value(struct gdri_set *s, int mode, uint64_t limit_ns);
__device__ int gdri_lib_barrier(int scope, int quiet);
__device__ int gdri_lib_grid_meet(void);
__device__ void gdri_lib_note_unseen(int status);
__device__ int gdri_lib_lock_set(long *lock);
__device__ int gdri_lib_lock_test(long *lock);
__device__ int gdri_lib_lock_clear(long *lock);

/* Memory: of one thread, of warps and blocks. */
__device__ int gdri_lib_memory(uint32_t form, void *remote, void *local, size_t len, int pe, uint32_t q);
__device__ int gdri_lib_put_signal(uint32_t form, void *dst, const void *src, size_t len, uint64_t *sig, uint64_t value,
				   int op, int pe, uint32_t q);
__device__ int gdri_lib_group_memory(uint32_t form, void *remote, void *local, size_t len, int pe, uint32_t q);
__device__ int gdri_lib_group_put_signal(uint32_t form, void *dst, const void *src, size_t len, uint64_t *sig,
					 uint64_t value, int op, int pe, uint32_t q);
__device__ int gdri_lib_bulk(uint32_t form, void *remote, void *local, size_t len, void *stage, size_t bytes, int pe,
			     uint32_t q);
__device__ int gdri_lib_strided(uint32_t form, void *dst, const void *src, int64_t dstep, int64_t sstep, size_t len,
				size_t n, int pe, uint32_t q);

/* Teams. */
__device__ int gdri_lib_team_my_pe(gdr_team_t team);
__device__ int gdri_lib_team_n_pes(gdr_team_t team);
__device__ int gdri_lib_team_translate_pe(gdr_team_t src_team, int src_pe, gdr_team_t dest_team);
__device__ void *gdri_lib_team_ptr(gdr_team_t team, const void *dest, int pe);
__device__ int gdri_lib_team_barrier(int scope, gdr_team_t team, int quiet);
__device__ int gdri_lib_broadcast(int scope, gdr_team_t team, void *dst, const void *src, size_t len, int root);
__device__ int gdri_lib_collect(int scope, gdr_team_t team, void *dst, const void *src, size_t len);
__device__ int gdri_lib_fcollect(int scope, gdr_team_t team, void *dst, const void *src, size_t len);
__device__ int gdri_lib_alltoall(int scope, gdr_team_t team, void *dst, const void *src, size_t len);
__device__ int gdri_lib_alltoalls(int scope, gdr_team_t team, void *dst, const void *src, int64_t dstep, int64_t sstep,
				  size_t n, uint32_t elem);
__device__ int gdri_lib_reduce(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code);
__device__ int gdri_lib_reducescatter(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code);
__device__ int gdri_lib_scan(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code,
			     int exclusive);
}

#if GDRI_LINKED
/* The names by which the quick ways call it. */
#define gdri_slow_word gdri_lib_word
#define gdri_slow_atomic gdri_lib_atomic
#define gdri_slow_fetch_nbi gdri_lib_fetch_nbi
#define gdri_slow_fetch gdri_lib_fetch
#define gdri_slow_value gdri_lib_value
#define gdri_signal_op_refuse(dev, op, sig, sig_op, pe) ((void)(dev), gdri_lib_signal_refuse(op, sig, sig_op, pe))
#define gdri_signal_wait gdri_lib_signal_wait
#define gdri_slow_fence gdri_lib_fence
#define gdri_slow_quiet(dev, c, pe) ((void)(dev), gdri_lib_quiet(c, pe))
#define gdri_take_latched(dev) ((void)(dev), gdri_lib_take_latched())
#define gdri_wait_flush_any(dev, op) ((void)(dev), gdri_lib_wait_flush(op))
#define gdri_set_wait gdri_lib_set_wait
#define gdri_set_test gdri_lib_set_test
#define gdri_set_wait_value gdri_lib_set_wait_value
#define gdri_barrier_scope gdri_lib_barrier
#define gdri_grid_meet gdri_lib_grid_meet
#define gdri_note_unseen(dev, status) ((void)(dev), gdri_lib_note_unseen(status))
#define gdri_lock_set gdri_lib_lock_set
#define gdri_lock_test gdri_lib_lock_test
#define gdri_lock_clear gdri_lib_lock_clear
#define gdr_team_my_pe gdri_lib_team_my_pe
#define gdr_team_n_pes gdri_lib_team_n_pes
#define gdr_team_translate_pe gdri_lib_team_translate_pe
#define gdr_team_ptr gdri_lib_team_ptr
#define gdri_team_barrier gdri_lib_team_barrier
#define gdri_broadcast gdri_lib_broadcast
#define gdri_collect gdri_lib_collect
#define gdri_fcollect gdri_lib_fcollect
#define gdri_alltoall gdri_lib_alltoall
#define gdri_alltoalls gdri_lib_alltoalls
#define gdri_reduce gdri_lib_reduce
#define gdri_reducescatter gdri_lib_reducescatter
#define gdri_scan gdri_lib_scan
#endif
#endif

#endif
