/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of operations, of which enumerations, prototypes, bodies, names in messages and lists in tests are made. A
 * number never changes: programs have it compiled in. A new number raises GDR_ABI_VERSION. TYPE, OP: any of the
 * family. */
#ifndef GDRI_OPS_H
#define GDRI_OPS_H

/* What is under way, of messages and wait records (enum gdri_op).
 * X(operation, number, its name in a record, the function or "", NVSHMEM's or "") */
#define GDRI_OPERATIONS(X)                                                                                        \
	X(NONE, 0, "operation", "", "")                                                                           \
	X(PUT, 1, "put", "gdr_put", "nvshmem_TYPE_put")                                                           \
	X(GET, 2, "get", "gdr_get", "nvshmem_TYPE_get")                                                           \
	X(P, 3, "p", "gdr_TYPE_p", "nvshmem_TYPE_p")                                                              \
	X(G, 4, "g", "gdr_TYPE_g", "nvshmem_TYPE_g")                                                              \
	X(PUT_SIGNAL, 5, "put_signal", "gdr_put_signal", "nvshmem_TYPE_put_signal")                               \
	X(SIGNAL, 6, "signal_op", "gdr_signal_op", "nvshmemx_signal_op")                                          \
	X(AMO, 7, "atomic", "gdr_TYPE_atomic_OP", "nvshmem_TYPE_atomic_OP")                                       \
	X(FETCH_AMO, 8, "fetching atomic", "gdr_TYPE_atomic_fetch_OP", "nvshmem_TYPE_atomic_fetch_OP")            \
	X(QUIET, 9, "quiet", "gdr_quiet", "nvshmem_quiet")                                                        \
	X(FENCE, 10, "fence", "gdr_fence", "nvshmem_fence")                                                       \
	X(BARRIER, 11, "barrier", "gdr_barrier_all", "nvshmem_barrier_all")                                       \
	X(SYNC, 12, "sync", "gdr_sync_all", "nvshmem_sync_all")                                                   \
	X(WAIT_UNTIL, 13, "wait_until", "gdr_TYPE_wait_until", "nvshmem_TYPE_wait_until")                         \
	X(SIGNAL_WAIT, 14, "signal_wait_until", "gdr_signal_wait_until", "nvshmem_signal_wait_until")             \
	X(BLAME, 15, "get of the diagnosis", "", "") /* who is to blame for a wait that expired */                \
	X(QUEUE_FULL, 16, "wait for room in a send queue", "", "")                                                \
	X(PUBLISH, 17, "wait for an earlier post", "", "") /* of an earlier reserver */                           \
	X(LOCK, 18, "lock", "gdr_set_lock or gdr_clear_lock", "")                                                 \
	X(HOST_CALL, 19, "collective call", "", "") /* of the host */                                             \
	/* from here on: collectives of a team */                                                                 \
	X(TEAM_SYNC, 20, "sync of a team", "gdr_team_sync or gdr_barrier", "nvshmem_team_sync or nvshmem_barrier")\
	X(BROADCAST, 21, "broadcast", "gdr_TYPE_broadcast", "nvshmem_TYPE_broadcast")                             \
	X(COLLECT, 22, "collect", "gdr_TYPE_collect", "nvshmem_TYPE_fcollect")                                    \
	X(ALLTOALL, 23, "alltoall", "gdr_TYPE_alltoall", "nvshmem_TYPE_alltoall")                                 \
	X(REDUCE, 24, "reduce", "gdr_TYPE_OP_reduce", "nvshmem_TYPE_OP_reduce")                                   \
	X(REDUCESCATTER, 25, "reducescatter", "gdr_TYPE_OP_reducescatter", "nvshmem_TYPE_OP_reducescatter")       \
	X(SCAN, 26, "scan", "gdr_TYPE_OP_inscan or exscan", "")                                                   \
	/* to here */                                                                                             \
	X(GRID_SYNC, 27, "barrier of a grid", "gdr_grid_sync", "")

/* Functions that share an operation with another one: what the checked build calls them. Those that differ by an ending
 * alone (_nbi, _warp, _block) are one. X(function, number, its name, NVSHMEM's or ""): numbers from 1 to 127 */
#define GDRI_CALLED_AS(X)                                                                                         \
	X(IPUT, 1, "gdr_TYPE_iput", "nvshmem_TYPE_iput")                                                          \
	X(IGET, 2, "gdr_TYPE_iget", "nvshmem_TYPE_iget")                                                          \
	X(IBPUT, 3, "gdr_TYPE_ibput", "")                                                                         \
	X(IBGET, 4, "gdr_TYPE_ibget", "")                                                                         \
	X(PUT_BULK, 5, "gdr_put_bulk", "")                                                                        \
	X(GET_BULK, 6, "gdr_get_bulk", "")                                                                        \
	X(SIGNAL_SET, 7, "gdr_signal_set", "")                                                                    \
	X(SIGNAL_ADD, 8, "gdr_signal_add", "")                                                                    \
	X(SIGNAL_FETCH, 9, "gdr_signal_fetch", "nvshmem_signal_fetch")                                            \
	X(QUIET_PE, 10, "gdr_quiet_pe", "")                                                                       \
	X(FENCE_PE, 11, "gdr_fence_pe", "")                                                                       \
	X(SET_LOCK, 12, "gdr_set_lock", "")                                                                       \
	X(TEST_LOCK, 13, "gdr_test_lock", "")                                                                     \
	X(CLEAR_LOCK, 14, "gdr_clear_lock", "")                                                                   \
	X(TEAM_SYNC, 15, "gdr_team_sync", "nvshmem_team_sync")                                                    \
	X(BARRIER, 16, "gdr_barrier", "nvshmem_barrier")                                                          \
	X(FCOLLECT, 17, "gdr_TYPE_fcollect", "nvshmem_TYPE_fcollect")                                             \
	X(ALLTOALLS, 18, "gdr_TYPE_alltoalls", "")                                                                \
	X(INSCAN, 19, "gdr_TYPE_OP_inscan", "")                                                                   \
	X(EXSCAN, 20, "gdr_TYPE_OP_exscan", "")

/* What a host thread asks the library for (enum gdri_what): executed by a thread, by a block, and for a team by a
 * block or many. X(request, number, prefix, behind gdr_, and rest of the function's name, operation) */
#define GDRI_REQUESTS_THREAD(X)                                                                    \
	X(BARRIER_ALL, 0, "", "barrier_all", BARRIER)                                              \
	X(SYNC_ALL, 1, "", "sync_all", SYNC)                                                       \
	X(BARRIER, 2, "", "barrier", TEAM_SYNC)                                                    \
	X(SYNC, 3, "", "team_sync", TEAM_SYNC)                                                     \
	X(QUIET, 4, "", "quiet", QUIET)                                                            \
	X(P, 5, "TYPE_", "p", P)                                                                   \
	X(G, 6, "TYPE_", "g", G)                                                                   \
	X(SIGNAL, 7, "", "signal_op", SIGNAL)                                                      \
	X(WAIT, 8, "TYPE_", "wait_until", WAIT_UNTIL)                                              \
	X(AMO, 9, "TYPE_", "atomic_OP", AMO)                                                       \
	X(FETCH_AMO, 10, "TYPE_", "atomic_fetch_OP", FETCH_AMO)                                    \
	X(LOCK, 11, "", "set_lock", LOCK)
#define GDRI_REQUESTS_BLOCK(X)                                                                     \
	X(PUT, GDRI_RQ_BY_BLOCK, "", "put", PUT)                                                   \
	X(GET, 13, "", "get", GET)                                                                 \
	X(IPUT, 14, "TYPE_", "iput", PUT)                                                          \
	X(IGET, 15, "TYPE_", "iget", GET)                                                          \
	X(PUT_SIGNAL, 16, "", "put_signal", PUT_SIGNAL)
#define GDRI_REQUESTS_TEAM(X)                                                                      \
	X(BROADCAST, GDRI_RQ_COLLECTIVE, "TYPE_", "broadcast", BROADCAST)                          \
	X(COLLECT, 18, "TYPE_", "collect", COLLECT)                                                \
	X(FCOLLECT, 19, "TYPE_", "fcollect", COLLECT)                                              \
	X(ALLTOALL, 20, "TYPE_", "alltoall", ALLTOALL)                                             \
	X(ALLTOALLS, 21, "TYPE_", "alltoalls", ALLTOALL)                                           \
	X(REDUCE, 22, "TYPE_OP_", "reduce", REDUCE)                                                \
	X(REDUCESCATTER, 23, "TYPE_OP_", "reducescatter", REDUCESCATTER)                           \
	X(INSCAN, 24, "TYPE_OP_", "inscan", SCAN)                                                  \
	X(EXSCAN, 25, "TYPE_OP_", "exscan", SCAN)
#define GDRI_REQUESTS(X)                                                                           \
	GDRI_REQUESTS_THREAD(X)                                                                    \
	GDRI_REQUESTS_BLOCK(X)                                                                     \
	GDRI_REQUESTS_TEAM(X)

/* What an atomic does to its word (enum gdri_amo). X(kind, number) */
#define GDRI_AMO_KINDS(X)                                                                          \
	X(SET, 0)                                                                                  \
	X(FETCH, 1)                                                                                \
	X(ADD, 2)                                                                                  \
	X(SWAP, 3)                                                                                 \
	X(CSWAP, 4)                                                                                \
	X(AND, 5)                                                                                  \
	X(OR, 6)                                                                                   \
	X(XOR, 7)                                                                                  \
	X(COMBINE, 0x10000) /* and beside it a code of coll/reduce_code.h: no NIC has it (amo_cas.h) */

#define GDRI_AMO_NUMBER(kind, number) GDRI_AMO_##kind = number,
enum gdri_amo { GDRI_AMO_KINDS(GDRI_AMO_NUMBER) };
/* Such a kind is GDRI_AMO_COMBINE and a code of coll/reduce_code.h. */
#define gdri_amo_combines(kind) (((uint32_t)(kind) & GDRI_AMO_COMBINE) != 0)
#define gdri_amo_code(kind) ((uint32_t)(kind) & ~(uint32_t)GDRI_AMO_COMBINE)

/* Atomics of one operand: gdr_T_atomic_OP, gdr_T_atomic_fetch_OP[_nbi], on a context and not. Those of numbers have all
 * types of atomics, those of bits the integers. X(OP, its kind with integers, the reduction that combines alike, ...),
 * where ... is what stands behind X in the list's use. Both have their whole names: MAX alone may be a macro of the
 * program. */
#define GDRI_AMO_NUMBER_OPS(X, ...)                                                                \
	X(add, GDRI_AMO_ADD, GDRI_SUM, __VA_ARGS__)                                                \
	X(max, GDRI_AMO_COMBINE, GDRI_MAX, __VA_ARGS__)                                            \
	X(min, GDRI_AMO_COMBINE, GDRI_MIN, __VA_ARGS__)
#define GDRI_AMO_BIT_OPS(X, ...)                                                                   \
	X(and, GDRI_AMO_AND, GDRI_AND, __VA_ARGS__)                                                \
	X(or, GDRI_AMO_OR, GDRI_OR, __VA_ARGS__)                                                   \
	X(xor, GDRI_AMO_XOR, GDRI_XOR, __VA_ARGS__)

#endif
