/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of teams (gdr/team.h), on the device and, where that is the host device, from host
 * threads. All members of the team make the same calls in the same order, one at a time, and in the
 * same form: one thread of each calls gdr_X, or all threads of a warp of each gdr_X_warp, of a block of
 * each gdr_X_block. The form has a part in the choice of the algorithm; members that call different ones
 * wait for each other until GDR_TIMEOUT. Syncs and barriers alone may be of any form on each. Which
 * thread or warp of which block calls, and how large that is, is each member's own matter. Lengths, root
 * and operation are the same on all members (collect: each its own length).
 *
 * dest and source are symmetric objects, the same on all members. On return dest of this PE is
 * there and source may be reused; dest of another member is not written before that one has entered
 * the call, so that calls may follow each other, on the same objects too, without a barrier. They
 * do not overlap, except: reduce, scans: dest may be source; broadcast: so on any member;
 * reducescatter: dest may be source, or the own block of it; fcollect: source may be the own block
 * of dest. Length 0 does nothing (and does not wait).
 *
 * With GDR_CHECKED the members first tell each other what they call, and wait for each other, whatever the length. A
 * call that is not the same on all is refused by all with -GDR_EMISMATCH and a text that names what differs; one that
 * a member refuses, with -GDR_EINVAL. None has begun it, and the next call finds them in step. All members' code is
 * checked, or none's: else they wait until GDR_TIMEOUT. Who calls while another one of its PE is in a call of the team
 * gets -GDR_EINVAL, latched too, and has no part in it.
 *
 * Status: 0, -GDR_EINVAL for arguments, on all members alike; else an error of a wait or a queue,
 * after which the members are out of step: who gave up tells the others, so that none of them waits for a limit of its
 * own; the team keeps the status, all its later calls return it on all members. A wait names the member that did not
 * come. (A member may succeed in the call that another one gave up, if all had come to it; in no later one. On
 * GPUs host threads that make or destroy teams hear of it by their own limits.)
 *
 *	gdr_team_sync(team)		waits for all members
 *	gdr_barrier(team)		gdr_quiet, then that
 *	gdr_<T>_broadcast(team, dest, source, nelems, root)	to all, root's dest too
 *	gdr_<T>_fcollect(team, dest, source, nelems)	everybody's nelems, in order of the members
 *	gdr_<T>_collect(team, dest, source, nelems)	fcollect with own nelems for each member
 *	gdr_<T>_alltoall(team, dest, source, nelems)	block i of source to block `me` of member i
 *	gdr_<T>_alltoalls(team, dest, source, dst, sst, nelems)	alltoall with steps: element k of block i stands
 *					at (i * nelems + k) * dst of dest, * sst of source; both > 0
 *	gdr_broadcastmem, ...		a name with mem: elements are bytes
 *	gdr_<T>_<op>_reduce(team, dest, source, nreduce)	op: and or xor (integer types), min max sum prod
 *					(half and bfloat16 too)
 *	gdr_<T>_<op>_reducescatter(team, dest, source, nreduce)	block i of n * nreduce elements to member i
 *	gdr_<T>_sum_inscan, _sum_exscan(team, dest, source, nelems)	sum of members 0 .. me, 0 .. me - 1
 *
 * Results are the same on all members to the last bit. min and max of a NaN are unspecified. */
#ifndef GDR_COLL_H
#define GDR_COLL_H

#include <gdr/macros.h>
#include <gdr/team.h>
#include <gdr/types.h>

#include <gdr/impl/arch/iso646_off.h>

/** @defgroup coll Collectives of teams
 * See the beginning of gdr/coll.h for what they do and when they may be called.
 * @include coll.c
 * @{ */
#define GDRI_DECLARE_COLL(pre, T, z, s)                                                            \
	GDRI_PROTOTYPE(int, gdr_##pre##broadcast##z##s,                                            \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems, int root))      \
	GDRI_PROTOTYPE(int, gdr_##pre##collect##z##s,                                              \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems))                \
	GDRI_PROTOTYPE(int, gdr_##pre##fcollect##z##s,                                             \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems))                \
	GDRI_PROTOTYPE(int, gdr_##pre##alltoall##z##s,                                             \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems))                \
	GDRI_PROTOTYPE(int, gdr_##pre##alltoalls##z##s,                                            \
		       (gdr_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,  \
			size_t nelems))
#define GDRI_DECLARE_COLLS(pre, T, z)                                                              \
	GDRI_DECLARE_COLL(pre, T, z, )                                                             \
	GDRI_DECLARE_COLL(pre, T, z, _warp)                                                        \
	GDRI_DECLARE_COLL(pre, T, z, _block)
#define GDRI_DECLARE_COLL_TYPE(name, T) GDRI_DECLARE_COLLS(name##_, T, )
#define GDRI_DECLARE_COLL_SIZE(bits, bytes) GDRI_DECLARE_COLLS(, void, bits)
/** Bytes: gdr_{broadcast,collect,fcollect,alltoall,alltoalls}mem[_warp,_block]. @{ */
GDRI_DECLARE_COLLS(, void, mem)
/** @} */
/** Elements of a type. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_COLL_TYPE)
GDR_RMA_TYPES_MORE(GDRI_DECLARE_COLL_TYPE)
/** @} */
/** Elements of 8 to 128 bits. @{ */
GDR_RMA_SIZES(GDRI_DECLARE_COLL_SIZE)
/** @} */

#define GDRI_DECLARE_REDUCE(name, T, op, s)                                                        \
	GDRI_PROTOTYPE(int, gdr_##name##_##op##_reduce##s,                                         \
		       (gdr_team_t team, T * dest, const T *source, size_t nreduce))               \
	GDRI_PROTOTYPE(int, gdr_##name##_##op##_reducescatter##s,                                  \
		       (gdr_team_t team, T * dest, const T *source, size_t nreduce))
#define GDRI_DECLARE_REDUCES(name, T, op)                                                          \
	GDRI_DECLARE_REDUCE(name, T, op, )                                                         \
	GDRI_DECLARE_REDUCE(name, T, op, _warp)                                                    \
	GDRI_DECLARE_REDUCE(name, T, op, _block)
#define GDRI_DECLARE_SCAN(name, T, s)                                                              \
	GDRI_PROTOTYPE(int, gdr_##name##_sum_inscan##s,                                            \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems))                \
	GDRI_PROTOTYPE(int, gdr_##name##_sum_exscan##s,                                            \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems))
#define GDRI_DECLARE_REDUCE_TYPE(name, T)                                                          \
	GDRI_DECLARE_REDUCES(name, T, sum)                                                         \
	GDRI_DECLARE_REDUCES(name, T, prod)                                                        \
	GDRI_DECLARE_REDUCES(name, T, min)                                                         \
	GDRI_DECLARE_REDUCES(name, T, max)                                                         \
	GDRI_DECLARE_SCAN(name, T, )                                                               \
	GDRI_DECLARE_SCAN(name, T, _warp)                                                          \
	GDRI_DECLARE_SCAN(name, T, _block)
#define GDRI_DECLARE_REDUCE_BITS(name, T)                                                          \
	GDRI_DECLARE_REDUCES(name, T, and)                                                         \
	GDRI_DECLARE_REDUCES(name, T, or)                                                          \
	GDRI_DECLARE_REDUCES(name, T, xor)
#define GDRI_DECLARE_REDUCE_HALF(name, T)                                                          \
	GDRI_DECLARE_REDUCES(name, T, sum)                                                         \
	GDRI_DECLARE_REDUCES(name, T, prod)                                                        \
	GDRI_DECLARE_REDUCES(name, T, min)                                                         \
	GDRI_DECLARE_REDUCES(name, T, max)
/** gdr_quiet, then waits for all members. @{ */
GDRI_PROTOTYPE(int, gdr_barrier, (gdr_team_t team))
GDRI_PROTOTYPE(int, gdr_barrier_warp, (gdr_team_t team))
GDRI_PROTOTYPE(int, gdr_barrier_block, (gdr_team_t team))
/** @} */
/** Waits for all members; completes nothing but own stores. @{ */
GDRI_PROTOTYPE(int, gdr_team_sync, (gdr_team_t team))
GDRI_PROTOTYPE(int, gdr_team_sync_warp, (gdr_team_t team))
GDRI_PROTOTYPE(int, gdr_team_sync_block, (gdr_team_t team))
/** @} */

/** Reductions, their scattered form, and scans. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_REDUCE_TYPE)
GDR_INTEGER_TYPES(GDRI_DECLARE_REDUCE_BITS)
GDR_HALF_TYPES(GDRI_DECLARE_REDUCE_HALF)
/** @} */
/** @} */

#include <gdr/impl/arch/iso646_on.h>

#endif
