/* SPDX-License-Identifier: BSD-3-Clause */
/* A libcuda.so.1 of host memory: enough of the driver for runtime/cuda/cuda.c, with a
 * GPU that hangs or fails when the test says so. */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

struct fake_cuda {
	int devices;	 /* that the driver counts; 1 at first */
	int hang_copy;	 /* copies and memsets stay on their stream until it is 0, */
	int good_copies; /* but for so many, counted down */
	int hang_sync;	 /* cuCtxSynchronize does not return until it is 0 */
	int sync_result; /* what it then returns */
	int no_fd, no_fabric; /* attributes of the device */
	int fabric_result; /* of making memory with handles of the fabric */
	int no_memory; /* none that could be shared is left */
	int ipc; /* what cuMemAlloc gives can be opened by other processes: a descriptor each */
	int ipc_result; /* of opening it */
	int pooled; /* cuMemAlloc gives memory of a pool */
	int page_result; /* of mapping one page of the host: a doorbell page */
	void *variable;	 /* that every module has, */
	unsigned long variable_size;
	/* Modules are numbered from 1 in the order in which they are loaded. NULL: none can be. */
	void (*kernel)(int module, const char *name, unsigned int blocks, const void *arg);
	void *(*constants)(int module); /* its variable, of variable_size too */
	int load_result; /* of loading one */
	int modules;	 /* that are loaded */
	/* counted by the fake; all atomics, relaxed: the tests wait for values */
	int retained, streams, syncs, in_sync, memory, mapped;
	int opened; /* allocations of other processes that are open here, */
	int freed_open; /* and own ones that were freed while others had them open */
	int unmapped_under; /* memory with a copy to it or from it on its stream */
	int letters; /* handles of the fabric that were given out */
	int elsewhere; /* memory made, kernels waited for by a thread that is not the first, */
	int disturbed; /* and that takes the program's signals */
	unsigned int flags; /* of the context */
	int rdma_memory; /* memory made that a NIC may reach on every machine */
	int ordered; /* kernels see what NICs write to the GPU's memory in its order */
	unsigned long copied; /* bytes, by streams */
	unsigned long held_at, held_len; /* copies from there stay on their stream until held_len is 0; looks at such */
	int held;
	int guarded; /* from the start: the processor does not reach the GPU's memory, but in fake_gpu()'s processes */
	int pageable; /* copies between the GPU and memory that the driver did not give or register: may wait for it */
};
extern struct fake_cuda fake_cuda;

/* Of a module that fake_cuda_kernel.c loaded, else NULL. */
struct CUmod_st;
void *fake_module_variable(const struct CUmod_st *module);

/* What is "memory of the GPU", for fake_cuda_map.c. */
int fake_range_add(unsigned long at, unsigned long size);
void fake_range_remove(unsigned long at);
/* Of memory that the processor does not reach: where copies find it. */
void fake_range_hide(unsigned long at, void *alias);
/* The place as copies find it. */
void *fake_reach(unsigned long at);
/* Runs `kernel` in a process of its own, which reaches what the GPU and the host memory of the driver's had when it
 * began; *pid is to be waited for. */
int fake_gpu(int (*kernel)(void *arg), void *arg, int *pid);
void fake_note_copy(unsigned long dst, unsigned long src); /* for fake_cuda.pageable */
/* Is a copy to or from it on its way? */
int fake_is_used(unsigned long at, unsigned long size);

/* fake_cuda_ipc.c: memory that other processes can open, at multiples of align; 0: there is none. */
unsigned long fake_shared_alloc(unsigned long size, unsigned long align);
/* 0: it is none of these. */
int fake_shared_free(unsigned long at);

#endif
