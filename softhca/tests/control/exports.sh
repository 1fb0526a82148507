#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The library defines the functions that it interposes and no other name: any more could take the
# place of a function of the program.
set -eu
library=$2
expected='__fxstat __fxstat64 __lxstat __lxstat64 __open64_2 __open_2 __openat64_2 __openat_2
__realpath_chk __xstat __xstat64 access close fopen fopen64 fstat fstat64 ioctl lstat lstat64 open
open64 openat openat64 opendir realpath socket sysconf getpagesize mmap mmap64 stat stat64 dlsym madvise gethostname cuGetProcAddress
cuGetProcAddress_v2 cuMemGetHandleForAddressRange cuMemHostRegister cuMemHostRegister_v2
cuMemHostUnregister cuMemFreeHost cuMemFree_v2 cuMemcpy cuMemcpyDtoD_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoH_v2
cuMemcpyHtoD_v2 cuMemcpyPeer cuMemsetD16_v2 cuMemsetD2D16_v2 cuMemsetD2D32_v2 cuMemsetD2D8_v2
cuMemsetD32_v2 cuMemsetD8_v2 cuStreamBeginCaptureToGraph cuStreamBeginCaptureToGraph_ptsz
cuStreamBeginCapture_v2 cuStreamBeginCapture_v2_ptsz cuStreamEndCapture cuStreamEndCapture_ptsz'
diff <(tr -s ' \n' '\n' <<<"$expected" | sort) \
	<(nm -D --defined-only "$library" | awk '{ print $3 }' |
		grep -vE '^(__(asan|odr_asan|ubsan|tsan|sancov|start_|stop_)|_init|_fini|__odr)' | sort)
# No thread-local storage: libraries loaded with dlopen could run out of it.
! readelf -lW "$library" | grep -q ' TLS '
