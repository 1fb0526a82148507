# SPDX-License-Identifier: BSD-3-Clause
"""Written by tools/gen_python: the device functions. NAME|RESULT|PARAMETERS|WORDS. T in a name is each word of
TYPES[WORDS], and in the rest its C type; N each of the sizes. "+" in front: also ctx_NAME(gdr_ctx_t ctx, ...)."""
C = {"int": "int",
     "long": "long",
     "longlong": "long long",
     "uint": "unsigned int",
     "ulong": "unsigned long",
     "ulonglong": "unsigned long long",
     "int32": "int32_t",
     "int64": "int64_t",
     "uint32": "uint32_t",
     "uint64": "uint64_t",
     "size": "size_t",
     "ptrdiff": "ptrdiff_t",
     "float": "float",
     "double": "double",
     "char": "char",
     "schar": "signed char",
     "short": "short",
     "uchar": "unsigned char",
     "ushort": "unsigned short",
     "int8": "int8_t",
     "int16": "int16_t",
     "uint8": "uint8_t",
     "uint16": "uint16_t",
     "half": "gdr_half_t",
     "bfloat16": "gdr_bfloat16_t",
     "complexf": "gdr_complexf_t",
     "complexd": "gdr_complexd_t"}
TYPES = {"a": "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff float double char schar short uchar ushort int8 int16 uint8 uint16 half bfloat16 complexf complexd",
         "b": "8 16 32 64 128",
         "c": "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff float double char schar short uchar ushort int8 int16 uint8 uint16 half bfloat16",
         "d": "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff float double char schar short uchar ushort int8 int16 uint8 uint16",
         "e": "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff char schar short uchar ushort int8 int16 uint8 uint16",
         "f": "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff float double",
         "g": "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff",
         "h": "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff short ushort"}
ROWS = """\
broadcastmem|int|gdr_team_t team, void *dest, const void *source, size_t nelems, int root|
collectmem|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
fcollectmem|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
alltoallmem|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
alltoallsmem|int|gdr_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|
broadcastmem_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems, int root|
collectmem_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
fcollectmem_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
alltoallmem_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
alltoallsmem_warp|int|gdr_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|
broadcastmem_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems, int root|
collectmem_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
fcollectmem_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
alltoallmem_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems|
alltoallsmem_block|int|gdr_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|
T_broadcast|int|gdr_team_t team, T *dest, const T *source, size_t nelems, int root|a
T_collect|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_fcollect|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_alltoall|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_alltoalls|int|gdr_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|a
T_broadcast_warp|int|gdr_team_t team, T *dest, const T *source, size_t nelems, int root|a
T_collect_warp|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_fcollect_warp|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_alltoall_warp|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_alltoalls_warp|int|gdr_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|a
T_broadcast_block|int|gdr_team_t team, T *dest, const T *source, size_t nelems, int root|a
T_collect_block|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_fcollect_block|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_alltoall_block|int|gdr_team_t team, T *dest, const T *source, size_t nelems|a
T_alltoalls_block|int|gdr_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|a
broadcastN|int|gdr_team_t team, void *dest, const void *source, size_t nelems, int root|b
collectN|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
fcollectN|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
alltoallN|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
alltoallsN|int|gdr_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|b
broadcastN_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems, int root|b
collectN_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
fcollectN_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
alltoallN_warp|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
alltoallsN_warp|int|gdr_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|b
broadcastN_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems, int root|b
collectN_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
fcollectN_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
alltoallN_block|int|gdr_team_t team, void *dest, const void *source, size_t nelems|b
alltoallsN_block|int|gdr_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems|b
barrier|int|gdr_team_t team|
barrier_warp|int|gdr_team_t team|
barrier_block|int|gdr_team_t team|
team_sync|int|gdr_team_t team|
team_sync_warp|int|gdr_team_t team|
team_sync_block|int|gdr_team_t team|
T_sum_reduce|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_sum_reducescatter|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_sum_reduce_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_sum_reducescatter_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_sum_reduce_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_sum_reducescatter_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_prod_reduce|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_prod_reducescatter|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_prod_reduce_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_prod_reducescatter_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_prod_reduce_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_prod_reducescatter_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_min_reduce|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_min_reducescatter|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_min_reduce_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_min_reducescatter_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_min_reduce_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_min_reducescatter_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_max_reduce|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_max_reducescatter|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_max_reduce_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_max_reducescatter_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_max_reduce_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_max_reducescatter_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|c
T_sum_inscan|int|gdr_team_t team, T *dest, const T *source, size_t nelems|d
T_sum_exscan|int|gdr_team_t team, T *dest, const T *source, size_t nelems|d
T_sum_inscan_warp|int|gdr_team_t team, T *dest, const T *source, size_t nelems|d
T_sum_exscan_warp|int|gdr_team_t team, T *dest, const T *source, size_t nelems|d
T_sum_inscan_block|int|gdr_team_t team, T *dest, const T *source, size_t nelems|d
T_sum_exscan_block|int|gdr_team_t team, T *dest, const T *source, size_t nelems|d
T_and_reduce|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_and_reducescatter|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_and_reduce_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_and_reducescatter_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_and_reduce_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_and_reducescatter_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_or_reduce|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_or_reducescatter|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_or_reduce_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_or_reducescatter_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_or_reduce_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_or_reducescatter_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_xor_reduce|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_xor_reducescatter|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_xor_reduce_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_xor_reducescatter_warp|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_xor_reduce_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
T_xor_reducescatter_block|int|gdr_team_t team, T *dest, const T *source, size_t nreduce|e
+put|int|void *dst, const void *src, size_t n, int pe|
+put_nbi|int|void *dst, const void *src, size_t n, int pe|
+get|int|void *dst, const void *src, size_t n, int pe|
+get_nbi|int|void *dst, const void *src, size_t n, int pe|
+put_warp|int|void *dst, const void *src, size_t n, int pe|
+put_nbi_warp|int|void *dst, const void *src, size_t n, int pe|
+get_warp|int|void *dst, const void *src, size_t n, int pe|
+get_nbi_warp|int|void *dst, const void *src, size_t n, int pe|
+put_block|int|void *dst, const void *src, size_t n, int pe|
+put_nbi_block|int|void *dst, const void *src, size_t n, int pe|
+get_block|int|void *dst, const void *src, size_t n, int pe|
+get_nbi_block|int|void *dst, const void *src, size_t n, int pe|
+T_put|int|T *dst, const T *src, size_t n, int pe|a
+T_put_nbi|int|T *dst, const T *src, size_t n, int pe|a
+T_get|int|T *dst, const T *src, size_t n, int pe|a
+T_get_nbi|int|T *dst, const T *src, size_t n, int pe|a
+T_put_warp|int|T *dst, const T *src, size_t n, int pe|a
+T_put_nbi_warp|int|T *dst, const T *src, size_t n, int pe|a
+T_get_warp|int|T *dst, const T *src, size_t n, int pe|a
+T_get_nbi_warp|int|T *dst, const T *src, size_t n, int pe|a
+T_put_block|int|T *dst, const T *src, size_t n, int pe|a
+T_put_nbi_block|int|T *dst, const T *src, size_t n, int pe|a
+T_get_block|int|T *dst, const T *src, size_t n, int pe|a
+T_get_nbi_block|int|T *dst, const T *src, size_t n, int pe|a
+putN|int|void *dst, const void *src, size_t n, int pe|b
+putN_nbi|int|void *dst, const void *src, size_t n, int pe|b
+getN|int|void *dst, const void *src, size_t n, int pe|b
+getN_nbi|int|void *dst, const void *src, size_t n, int pe|b
+putN_warp|int|void *dst, const void *src, size_t n, int pe|b
+putN_nbi_warp|int|void *dst, const void *src, size_t n, int pe|b
+getN_warp|int|void *dst, const void *src, size_t n, int pe|b
+getN_nbi_warp|int|void *dst, const void *src, size_t n, int pe|b
+putN_block|int|void *dst, const void *src, size_t n, int pe|b
+putN_nbi_block|int|void *dst, const void *src, size_t n, int pe|b
+getN_block|int|void *dst, const void *src, size_t n, int pe|b
+getN_nbi_block|int|void *dst, const void *src, size_t n, int pe|b
+put_bulk|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+put_bulk_nbi|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+put_bulk_warp|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+put_bulk_nbi_warp|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+put_bulk_block|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+put_bulk_nbi_block|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+get_bulk|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+get_bulk_nbi|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+get_bulk_warp|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+get_bulk_nbi_warp|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+get_bulk_block|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+get_bulk_nbi_block|int|void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe|
+T_p|int|T *dst, T value, int pe|a
+T_g|T|const T *src, int pe|a
+T_iput|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_iget|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_ibput|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_ibget|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_iput_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_iget_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_ibput_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_ibget_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_iput_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_iget_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_ibput_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_ibget_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_iput_nbi|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_iget_nbi|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_ibput_nbi|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_ibget_nbi|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_iput_nbi_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_iget_nbi_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_ibput_nbi_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_ibget_nbi_warp|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_iput_nbi_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_iget_nbi_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|a
+T_ibput_nbi_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+T_ibget_nbi_block|int|T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|a
+iputN|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+igetN|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+ibputN|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+ibgetN|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+iputN_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+igetN_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+ibputN_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+ibgetN_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+iputN_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+igetN_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+ibputN_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+ibgetN_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+iputN_nbi|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+igetN_nbi|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+ibputN_nbi|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+ibgetN_nbi|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+iputN_nbi_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+igetN_nbi_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+ibputN_nbi_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+ibgetN_nbi_warp|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+iputN_nbi_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+igetN_nbi_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe|b
+ibputN_nbi_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+ibgetN_nbi_block|int|void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe|b
+put_signal|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|
+put_signal_warp|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|
+put_signal_block|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|
+put_signal_nbi|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|
+put_signal_nbi_warp|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|
+put_signal_nbi_block|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|
+T_put_signal|int|T *dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|a
+T_put_signal_warp|int|T *dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|a
+T_put_signal_block|int|T *dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|a
+T_put_signal_nbi|int|T *dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|a
+T_put_signal_nbi_warp|int|T *dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|a
+T_put_signal_nbi_block|int|T *dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|a
+putN_signal|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|b
+putN_signal_warp|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|b
+putN_signal_block|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|b
+putN_signal_nbi|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|b
+putN_signal_nbi_warp|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|b
+putN_signal_nbi_block|int|void *dst, const void *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe|b
+signal_op|int|uint64_t *sig, uint64_t value, int op, int pe|
+signal_set|int|uint64_t *sig, uint64_t value, int pe|
+signal_add|int|uint64_t *sig, uint64_t value, int pe|
signal_fetch|uint64_t|const uint64_t *sig|
signal_wait_until|int|const uint64_t *sig, int cmp, uint64_t value|
signal_wait_until_from|int|const uint64_t *sig, int cmp, uint64_t value, int pe|
+T_atomic_set|int|T *dst, T value, int pe|f
+T_atomic_fetch|T|const T *dst, int pe|f
+T_atomic_fetch_nbi|int|T *fetch, const T *dst, int pe|f
+T_atomic_swap|T|T *dst, T value, int pe|f
+T_atomic_swap_nbi|int|T *fetch, T *dst, T value, int pe|f
+T_atomic_compare_swap|T|T *dst, T cond, T value, int pe|f
+T_atomic_compare_swap_nbi|int|T *fetch, T *dst, T cond, T value, int pe|f
+T_atomic_inc|int|T *dst, int pe|f
+T_atomic_fetch_inc|T|T *dst, int pe|f
+T_atomic_fetch_inc_nbi|int|T *fetch, T *dst, int pe|f
+T_atomic_add|int|T *dst, T value, int pe|f
+T_atomic_fetch_add|T|T *dst, T value, int pe|f
+T_atomic_fetch_add_nbi|int|T *fetch, T *dst, T value, int pe|f
+T_atomic_and|int|T *dst, T value, int pe|g
+T_atomic_fetch_and|T|T *dst, T value, int pe|g
+T_atomic_fetch_and_nbi|int|T *fetch, T *dst, T value, int pe|g
+T_atomic_or|int|T *dst, T value, int pe|g
+T_atomic_fetch_or|T|T *dst, T value, int pe|g
+T_atomic_fetch_or_nbi|int|T *fetch, T *dst, T value, int pe|g
+T_atomic_xor|int|T *dst, T value, int pe|g
+T_atomic_fetch_xor|T|T *dst, T value, int pe|g
+T_atomic_fetch_xor_nbi|int|T *fetch, T *dst, T value, int pe|g
T_wait_until|int|const T *ptr, int cmp, T value|h
T_wait_until_for|int|const T *ptr, int cmp, T value, uint64_t limit_ns|h
T_wait_until_all|int|const T *ptrs, size_t n, const int *status, int cmp, T value|h
T_wait_until_any|size_t|const T *ptrs, size_t n, const int *status, int cmp, T value|h
T_wait_until_some|size_t|const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, T value|h
T_wait_until_all_vector|int|const T *ptrs, size_t n, const int *status, int cmp, const T *values|h
T_wait_until_any_vector|size_t|const T *ptrs, size_t n, const int *status, int cmp, const T *values|h
T_wait_until_some_vector|size_t|const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, const T *values|h
T_wait_until_all_for|int|const T *ptrs, size_t n, const int *status, int cmp, T value, uint64_t limit_ns|h
T_wait_until_any_for|size_t|const T *ptrs, size_t n, const int *status, int cmp, T value, uint64_t limit_ns|h
T_wait_until_some_for|size_t|const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, T value, uint64_t limit_ns|h
T_wait_until_all_vector_for|int|const T *ptrs, size_t n, const int *status, int cmp, const T *values, uint64_t limit_ns|h
T_wait_until_any_vector_for|size_t|const T *ptrs, size_t n, const int *status, int cmp, const T *values, uint64_t limit_ns|h
T_wait_until_some_vector_for|size_t|const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, const T *values, uint64_t limit_ns|h
T_test|int|const T *ptr, int cmp, T value|h
T_test_all|int|const T *ptrs, size_t n, const int *status, int cmp, T value|h
T_test_any|size_t|const T *ptrs, size_t n, const int *status, int cmp, T value|h
T_test_some|size_t|const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, T value|h
T_test_all_vector|int|const T *ptrs, size_t n, const int *status, int cmp, const T *values|h
T_test_any_vector|size_t|const T *ptrs, size_t n, const int *status, int cmp, const T *values|h
T_test_some_vector|size_t|const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, const T *values|h
set_lock|int|long *lock|
test_lock|int|long *lock|
clear_lock|int|long *lock|
+fence_pe|int|int pe|
+quiet_pe|int|int pe|
barrier_all_block|int||
barrier_all_warp|int||
+fence|int||
my_pe|int||
n_pes|int||
ptr|void *|const void *ptr, int pe|
+quiet|int||
status|int||
sync_all_block|int||
sync_all_warp|int||
sync_all|int||
team_my_pe|int|gdr_team_t team|
team_n_pes|int|gdr_team_t team|
team_ptr|void *|gdr_team_t team, const void *dest, int pe|
team_translate_pe|int|gdr_team_t src_team, int src_pe, gdr_team_t dest_team|
barrier_all|int||
"""


def prototypes():
    """{name without gdr_: (result, parameters)} in C"""
    out = {}
    for name, result, params, key in (row.split("|") for row in ROWS.splitlines()):
        for word in TYPES[key].split() if key else [""]:
            c = C.get(word, "T")
            one = name.lstrip("+").replace("T" if word in C else "N", word, 1) if key else name.lstrip("+")
            r, p = (" ".join(c if w == "T" else w for w in x.split(" ")) for x in (result, params))
            out[one] = r, p
            if name[0] == "+":
                out["ctx_" + one] = r, "gdr_ctx_t ctx" + (", " + p if p else "")
    return out
