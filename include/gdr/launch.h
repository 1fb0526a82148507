/* SPDX-License-Identifier: BSD-3-Clause */
/* One kernel source, two worlds: how a kernel is declared, launched and
 * awaited so that the same file compiles as CUDA C (nvcc) and as C11 for the
 * host device, whose blocks run on CPU threads.
 *
 *	struct args { int *data; int n; };
 *	GDR_KERNEL(scale, struct args, a)
 *	{
 *		int i = (int)(gdr_block_id() * gdr_block_size() + gdr_thread_id());
 *		if (i < a.n)
 *			a.data[i] *= 2;
 *	}
 *	...
 *	struct args a = {data, n};
 *	ret = gdr_launch(scale, blocks, threads, 0, stream, &a);
 *	ret = gdr_stream_sync(stream);
 *
 * The last argument of a launch points to the kernel's own struct: the compiler refuses one of another type. It takes
 * a void * as the program's word.
 *
 * Grids and blocks of two and three dimensions: gdr_launch_3d, and the coordinates of gdr/simt.h. For the operations of
 * gdr/device.h a block is its threads in a row, x fastest, as in CUDA: a warp is 32 of them.
 *
 *	GDR_KERNEL(blur, struct image, a)
 *	{
 *		struct gdr_dim3 b = gdr_block_id_3d(), t = gdr_thread_id_3d(), n = gdr_block_size_3d();
 *
 *		blur_pixel(&a, b.x * n.x + t.x, b.y * n.y + t.y);
 *	}
 *	...
 *	ret = gdr_launch_3d(blur, gdr_make_dim3(columns / 32, rows / 8, 1), gdr_make_dim3(32, 8, 1), 0, stream, &a);
 *
 * A CUDA program that has no wish for the host device uses <<<>>> as ever. */
#ifndef GDR_LAUNCH_H
#define GDR_LAUNCH_H

#include <gdr/macros.h>
#include <gdr/simt.h>
#include <gdr/status.h>

GDR_EXTERN_C_BEGIN

/* A queue of kernels that run in order; NULL is the default stream. Under CUDA this
 * is cudaStream_t. */
typedef struct CUstream_st *gdr_stream_t;

#define GDR_MAX_BLOCK 1024u /* threads of a block; warps are 32 lanes in both worlds */
#define GDR_MAX_GRID 0x7fffffffu /* blocks of a grid: CUDA's limit */
#define GDR_MAX_SHARED (227u * 1024u) /* of a block on sm_90; the host device's limit */

#if !defined(__CUDACC_RTC__) && !(defined(__CUDACC__) && defined(GDR_MODULE))
/* For `call` of kernel `name`: what no GPU launches is logged. -GDR_EINVAL. */
GDR_API int gdri_launch_extents(const char *call, const char *name, struct gdr_dim3 grid, struct gdr_dim3 block);
#endif

#ifdef __cplusplus
extern "C++" {
/* May a kernel that takes an A be given a B *? */
template <typename A, typename B> struct gdri_takes {
	enum { yes = 0 };
};
template <typename A> struct gdri_takes<A, A> {
	enum { yes = 1 };
};
template <typename A> struct gdri_takes<A, const A> {
	enum { yes = 1 };
};
template <typename A> struct gdri_takes<A, void> {
	enum { yes = 1 };
};
template <typename A> struct gdri_takes<A, const void> {
	enum { yes = 1 };
};
}
#endif

#if defined(__CUDACC_RTC__) || (defined(__CUDACC__) && defined(GDR_MODULE))

/* Code that is loaded by hand: launched by its plain name with cuLaunchKernel. */
#ifndef GDR_KERNEL_THREADS
#define GDR_KERNEL_THREADS GDR_MAX_BLOCK
#endif
#define GDR_KERNEL(name, type, arg)                                                                \
	extern "C" __global__ void __launch_bounds__(GDR_KERNEL_THREADS) name(type arg)

#elif defined(__CUDACC__)

#include <gdr/impl/arch/unit.h>

/* Logs a CUDA error. Returns -GDR_ESYSTEM. */
GDR_API int gdri_cuda_failed(const char *call, int code, const char *text);

static inline int gdri_cuda_result(const char *call, cudaError_t e)
{
	return e == cudaSuccess ? GDR_OK : gdri_cuda_failed(call, (int)e, cudaGetErrorString(e));
}

/* The largest block that kernels of a source are launched with; define it smaller before the
 * header to give their threads more registers. */
#ifndef GDR_KERNEL_THREADS
#define GDR_KERNEL_THREADS GDR_MAX_BLOCK
#endif
#ifdef GDR_NO_QUEUES
#define GDR_KERNEL(name, type, arg)                                                                \
	static __global__ void __launch_bounds__(GDR_KERNEL_THREADS) name(type arg)
#else
/* Twice: for any job, and for one whose PEs are all mapped, where the compiler drops the code that posts to queues
 * and so the registers and the stack that it takes. */
#define GDR_KERNEL(name, type, arg)                                                                \
	static __device__ __forceinline__ void gdri_kernel_body_##name(type arg);                  \
	static __global__ void __launch_bounds__(GDR_KERNEL_THREADS) name(type gdri_arg)           \
	{                                                                                          \
		gdri_kernel_body_##name(gdri_arg);                                                 \
	}                                                                                          \
	static __global__ void __launch_bounds__(GDR_KERNEL_THREADS) gdri_kernel_direct_##name(type gdri_arg) \
	{                                                                                          \
		if (gdri_constants_here.direct)                                                    \
			gdri_kernel_body_##name(gdri_arg);                                         \
	}                                                                                          \
	static struct gdri_kernel gdri_kernel_entry_##name = {(const void *)name,                  \
							(const void *)gdri_kernel_direct_##name, 0}; \
	__attribute__((constructor)) static void gdri_kernel_add_##name(void)                      \
	{                                                                                          \
		gdri_kernel_entry_##name.next = gdri_kernels_here;                                 \
		gdri_kernels_here = &gdri_kernel_entry_##name;                                     \
	}                                                                                          \
	static __device__ __forceinline__ void gdri_kernel_body_##name(type arg)
#endif

/* The versions of the kernels of this source. */
struct gdri_kernel {
	const void *any, *direct;
	struct gdri_kernel *next;
};
static struct gdri_kernel *gdri_kernels_here __attribute__((unused));

static inline const void *gdri_version_of(const void *kernel)
{
	int device;

	if (!gdri_unit_here.direct || cudaGetDevice(&device) != cudaSuccess ||
	    device + 1 != gdri_unit_here.direct)
		return kernel;
	for (const struct gdri_kernel *k = gdri_kernels_here; k; k = k->next)
		if (k->any == kernel)
			return k->direct;
	return kernel;
}

extern "C++" {
/* The kernel, whose struct the argument points to. */
template <typename A, typename B> static inline const void *gdri_kernel_for(void (*kernel)(A), B *)
{
	static_assert(gdri_takes<A, B>::yes, "the kernel takes another struct");
	return (const void *)kernel;
}

static inline const void *gdri_kernel_for(const void *kernel, const void *)
{
	return kernel; /* the program hid its type */
}
}

/* Before a launch with `shared` bytes: a kernel has to ask for more than 48 KiB. */
static inline cudaError_t gdri_cuda_ask_shared(const void *version, size_t shared)
{
	if (shared <= 48u * 1024)
		return cudaSuccess;
	return cudaFuncSetAttribute(version, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
}

static inline int gdri_cuda_launch_as(const void *kernel, const char *name, dim3 grid, dim3 block, size_t shared,
				      gdr_stream_t stream, const void *arg)
{
	void *args[1] = {(void *)arg};
	const void *version = gdri_version_of(kernel);
	cudaError_t e = gdri_cuda_ask_shared(version, shared);

	if (e == cudaSuccess)
		e = cudaLaunchKernel(version, grid, block, args, shared, stream);
	return gdri_cuda_result(name, e);
}

static inline int gdri_cuda_launch(const char *call, const void *kernel, const char *name, struct gdr_dim3 grid,
				   struct gdr_dim3 block, size_t shared, gdr_stream_t stream, const void *arg)
{
	int ret = gdri_launch_extents(call, name, grid, block);

	return ret ? ret : gdri_cuda_launch_as(kernel, name, grid, block, shared, stream, arg);
}

#define gdr_launch(name, grid, block, shared, stream, argp)                                        \
	gdri_cuda_launch("gdr_launch", gdri_kernel_for((name), (argp)), #name, gdr_make_dim3((grid), 1, 1), \
			 gdr_make_dim3((block), 1, 1), (shared), (stream), (argp))
/* Its contract stands at the host device's declarations below. */
#define gdr_launch_3d(name, grid, block, shared, stream, argp)                                     \
	gdri_cuda_launch("gdr_launch_3d", gdri_kernel_for((name), (argp)), #name, (grid), (block), (shared),  \
			 (stream), (argp))

/* As many blocks as run at once. */
static inline int gdri_collective_grid(const void *kernel, int block, size_t shared, int *grid)
{
	int device, sms = 0, each = 0;
	cudaError_t e = cudaGetDevice(&device);

	if (e == cudaSuccess)
		e = gdri_cuda_ask_shared(gdri_version_of(kernel), shared);
	if (e == cudaSuccess)
		e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
	if (e == cudaSuccess)
		e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, gdri_version_of(kernel), block,
								  shared);
	*grid = sms * each;
	return gdri_cuda_result("cudaOccupancyMaxActiveBlocksPerMultiprocessor", e);
}

static inline int gdri_collective_launch(const void *kernel, const char *name, dim3 grid, dim3 block,
					 void **args, size_t shared, gdr_stream_t stream)
{
	const void *version = gdri_version_of(kernel);
	int most = 0, ret = 0;
	cudaError_t e;

	if (!grid.x) {
		ret = gdri_collective_grid(kernel, (int)(block.x * block.y * block.z), shared, &most);
		grid = dim3((unsigned)most);
	}
	if (ret)
		return ret;
	e = gdri_cuda_ask_shared(version, shared);
	if (e == cudaSuccess)
		e = cudaLaunchCooperativeKernel(version, grid, block, args, shared, stream);
	return gdri_cuda_result(name, e);
}

static inline int gdri_collective_launch_one(const void *kernel, const char *name, unsigned grid,
					     unsigned block, size_t shared, gdr_stream_t stream,
					     const void *arg)
{
	void *args[1] = {(void *)arg};
	int ret = gdri_launch_extents("gdr_collective_launch", name, gdr_make_dim3(grid ? grid : 1, 1, 1),
				      gdr_make_dim3(block, 1, 1));

	return ret ? ret : gdri_collective_launch(kernel, name, dim3(grid), dim3(block), args, shared, stream);
}

static inline int gdri_collective_launch_3d(const void *kernel, const char *name, struct gdr_dim3 grid,
					    struct gdr_dim3 block, size_t shared, gdr_stream_t stream,
					    const void *arg)
{
	void *args[1] = {(void *)arg};
	int ret = gdri_launch_extents("gdr_collective_launch_3d", name, grid, block);

	return ret ? ret : gdri_collective_launch(kernel, name, grid, block, args, shared, stream);
}

/* gdr_collective_launch, that of three dimensions and the query: their contracts stand at the host device's
 * declarations below. */
#define gdr_collective_launch(name, grid, block, shared, stream, argp)                             \
	gdri_collective_launch_one(gdri_kernel_for((name), (argp)), #name, (grid), (block), (shared), (stream), (argp))
#define gdr_collective_launch_3d(name, grid, block, shared, stream, argp)                          \
	gdri_collective_launch_3d(gdri_kernel_for((name), (argp)), #name, (grid), (block), (shared), (stream), (argp))
#define gdr_collective_launch_query_gridsize(name, block, shared, gridp)                           \
	gdri_collective_grid((const void *)(name), (int)(block), (shared), (gridp))

static inline int gdr_stream_create(gdr_stream_t *stream)
{
	return gdri_cuda_result("cudaStreamCreate",
				cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
}

static inline int gdr_stream_sync(gdr_stream_t stream)
{
	return gdri_cuda_result("cudaStreamSynchronize", cudaStreamSynchronize(stream));
}

static inline int gdr_stream_destroy(gdr_stream_t stream)
{
	return gdri_cuda_result("cudaStreamDestroy", cudaStreamDestroy(stream));
}

/* Copies between host memory and memory of the device, either way. */
static inline int gdr_memcpy(void *dst, const void *src, size_t len)
{
	int ret = gdri_cuda_result("cudaMemcpy", cudaMemcpy(dst, src, len, cudaMemcpyDefault));

	/* From pageable memory it returns when the source is free: peers and the library's own copies
	 * do not wait for that stream. */
	return ret ? ret : gdri_cuda_result("cudaMemcpy", cudaStreamSynchronize(0));
}

#else

GDR_API int gdri_cuda_failed(const char *call, int code, const char *text);
/* Begins kernel `name`, which takes a `type`, in its body `arg`; its return type, of nothing, says what it takes. */
#define GDR_KERNEL(name, type, arg)                                                                \
	static void gdri_kernel_body_##name(type arg);                                             \
	static type *name(type const *gdri_arg)                                                    \
	{                                                                                          \
		type gdri_copy = *gdri_arg;                                                        \
		gdri_kernel_body_##name(gdri_copy);                                                \
		return 0;                                                                          \
	}                                                                                          \
	static void gdri_kernel_body_##name(type arg)
#define GDRI_KERNEL_SIZE(name) sizeof(*(name)(0))
#define GDRI_KERNEL_PLAIN(name) ((void (*)(const void *))(void (*)(void))(name))

#ifdef __cplusplus
extern "C++" {
template <typename A, typename B> static inline size_t gdri_kernel_size(A *(*)(const A *), B *)
{
	static_assert(gdri_takes<A, B>::yes, "the kernel takes another struct");
	return sizeof(A);
}
}
#define GDRI_KERNEL_ARG(name, argp) (argp), gdri_kernel_size((name), (argp))
#else
#define GDRI_IS_A(p, T) __builtin_types_compatible_p(__typeof__(1 ? (p) : (p)), T)
#define GDRI_KERNEL_TAKES(name, argp)                                                              \
	(GDRI_IS_A(argp, __typeof__((name)(0))) || GDRI_IS_A(argp, const __typeof__(*(name)(0)) *) || \
	 GDRI_IS_A(argp, void *) || GDRI_IS_A(argp, const void *))
/* A field of less than no bits is an error of any compiler. */
#define GDRI_KERNEL_ARG(name, argp)                                                                \
	(argp), GDRI_KERNEL_SIZE(name) +                                                           \
			0 * sizeof(struct {                                                        \
				int the_kernel_takes_another_struct                                \
					: GDRI_KERNEL_TAKES(name, argp) ? 1 : -1;                  \
			})
#endif

/* Asynchronous; the argument struct is copied. Kernels of one stream run in order, those of
 * different streams at the same time. Blocks are started in order of their numbers, all at
 * once up to GDR_HOST_DEVICE_BLOCKS of the process, the others as earlier ones end: as on a
 * GPU, a kernel whose blocks wait for each other must fit. Any host thread, before gdr_init
 * too; not from a kernel. -GDR_EINVAL for less than 1 or more than GDR_MAX_GRID blocks, and less than 1 or more than
 * GDR_MAX_BLOCK threads of each; -GDR_ENOMEM, -GDR_ESYSTEM. */
#define gdr_launch(name, grid, block, shared, stream, argp)                                        \
	gdri_hd_launch(GDRI_KERNEL_PLAIN(name), #name, (grid), (block), (shared), (stream),        \
		       GDRI_KERNEL_ARG(name, argp))

GDR_API int gdri_hd_launch(void (*kernel)(const void *arg), const char *name, unsigned grid,
			   unsigned block, size_t shared, gdr_stream_t stream, const void *arg,
			   size_t arg_size);
/* gdr_launch with a struct gdr_dim3 for grid and block. -GDR_EINVAL for other extents than CUDA's: of the block 1 to
 * 1024 by 1024 by 64, GDR_MAX_BLOCK threads in all; of the grid 1 to 65535 in y and z, GDR_MAX_GRID blocks in all. */
#define gdr_launch_3d(name, grid, block, shared, stream, argp)                                     \
	gdri_hd_launch_3d(GDRI_KERNEL_PLAIN(name), #name, (grid), (block), (shared), (stream),     \
			  GDRI_KERNEL_ARG(name, argp))

GDR_API int gdri_hd_launch_3d(void (*kernel)(const void *arg), const char *name, struct gdr_dim3 grid,
			      struct gdr_dim3 block, size_t shared, gdr_stream_t stream, const void *arg,
			      size_t arg_size);
/* A kernel whose blocks may wait for each other (gdr_grid_sync), and for those of other PEs: all of them run at once,
 * or it is refused. grid 0: as many as fit. All PEs launch it. _query_gridsize: how many fit on this
 * PE; a program takes the least of all PEs' where they have to be equal. _3d: as gdr_launch_3d, no extent is 0. */
#define gdr_collective_launch(name, grid, block, shared, stream, argp)                             \
	gdri_hd_collective_launch(GDRI_KERNEL_PLAIN(name), #name, (grid), (block), (shared), (stream), \
				  GDRI_KERNEL_ARG(name, argp))
#define gdr_collective_launch_3d(name, grid, block, shared, stream, argp)                          \
	gdri_hd_collective_launch_3d(GDRI_KERNEL_PLAIN(name), #name, (grid), (block), (shared), (stream), \
				     GDRI_KERNEL_ARG(name, argp))
#define gdr_collective_launch_query_gridsize(name, block, shared, gridp)                           \
	gdri_hd_collective_grid(GDRI_KERNEL_PLAIN(name), (block), (shared), (gridp))
GDR_API int gdri_hd_collective_launch(void (*kernel)(const void *arg), const char *name, unsigned grid,
				      unsigned block, size_t shared, gdr_stream_t stream,
				      const void *arg, size_t arg_size);
GDR_API int gdri_hd_collective_launch_3d(void (*kernel)(const void *arg), const char *name, struct gdr_dim3 grid,
					 struct gdr_dim3 block, size_t shared, gdr_stream_t stream,
					 const void *arg, size_t arg_size);
GDR_API int gdri_hd_collective_grid(void (*kernel)(const void *arg), unsigned block, size_t shared,
				    int *grid);
GDR_API int gdr_stream_create(gdr_stream_t *stream);
/* Waits for all kernels launched on the stream before; bounded only by theirs. Returns the
 * first error of a kernel since the last sync. */
GDR_API int gdr_stream_sync(gdr_stream_t stream);
/* As gdr_stream_sync, then frees the stream. */
GDR_API int gdr_stream_destroy(gdr_stream_t stream);
/* Waits for the kernels of the default stream, as cudaMemcpy does, then copies. */
GDR_API int gdr_memcpy(void *dst, const void *src, size_t len);

#endif

GDR_EXTERN_C_END

#endif
