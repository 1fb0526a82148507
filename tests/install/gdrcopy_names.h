/* SPDX-License-Identifier: BSD-3-Clause */
/* Names exported by gdrcopy 2.6's libgdrapi on x86-64, as `nm -D --defined-only`
 * lists them (of a build from tag v2.6 with a compiler that knows MOVDIR64B). Programs use both
 * libraries at once: gdr may export none of them. */
#ifndef TESTS_GDRCOPY_NAMES_H
#define TESTS_GDRCOPY_NAMES_H

#define GDRCOPY_FUNCTIONS(X)                                                                       \
	X(gdr_open)                                                                                \
	X(gdr_close)                                                                               \
	X(gdr_pin_buffer)                                                                          \
	X(gdr_pin_buffer_v2)                                                                       \
	X(gdr_unpin_buffer)                                                                        \
	X(gdr_get_callback_flag)                                                                   \
	X(gdr_get_info)                                                                            \
	X(gdr_get_info_v2)                                                                         \
	X(gdr_map)                                                                                 \
	X(gdr_map_v2)                                                                              \
	X(gdr_unmap)                                                                               \
	X(gdr_copy_to_mapping)                                                                     \
	X(gdr_copy_from_mapping)                                                                   \
	X(gdr_runtime_get_version)                                                                 \
	X(gdr_driver_get_version)                                                                  \
	X(gdr_get_attribute)                                                                       \
	X(gdr_get_mapping_type_string)                                                             \
	X(gdr_msg)                                                                                 \
	X(gdr_cuda_init)                                                                           \
	X(gdr_cuda_cleanup)                                                                        \
	X(gdr_cuda_device_is_coherent)                                                             \
	X(gdr_cuda_device_supports_dmabuf_mmap)                                                    \
	X(gdr_cuda_any_device_supports_dmabuf_mmap)                                                \
	X(memcpy_uncached_load_sse)                                                                \
	X(memcpy_uncached_load_sse41)                                                              \
	X(memcpy_uncached_load_avx)                                                                \
	X(memcpy_uncached_load_avx2)                                                               \
	X(memcpy_uncached_load_avx512)                                                             \
	X(memcpy_uncached_store_sse)                                                               \
	X(memcpy_uncached_store_sse41)                                                             \
	X(memcpy_uncached_store_avx)                                                               \
	X(memcpy_uncached_store_avx2)                                                              \
	X(memcpy_uncached_store_avx512)                                                            \
	X(memcpy_uncached_store_movdir64b)

#define GDRCOPY_POINTERS(X)                                                                        \
	X(gdr_cuInit)                                                                              \
	X(gdr_cuDeviceGet)                                                                         \
	X(gdr_cuDeviceGetCount)                                                                    \
	X(gdr_cuDeviceGetAttribute)                                                                \
	X(gdr_cuDevicePrimaryCtxRetain)                                                            \
	X(gdr_cuDevicePrimaryCtxRelease)                                                           \
	X(gdr_cuCtxGetCurrent)                                                                     \
	X(gdr_cuCtxSetCurrent)                                                                     \
	X(gdr_cuPointerGetAttribute)                                                               \
	X(gdr_cuMemGetHandleForAddressRange)                                                       \
	X(gdr_cuGetErrorName)                                                                      \
	X(gdr_cuGetErrorString)

#endif
