/* SPDX-License-Identifier: BSD-3-Clause */
/* Host API: bring-up, symmetric memory, host-initiated transfers, errors.
 *
 * Functions return 0 or -GDR_E* (gdr/status.h) unless said otherwise, and log
 * the reason of a failure once on stderr. "Collective" means: every PE of the
 * job calls it, in the same order among collective calls; "local": a PE for
 * itself. Any thread may call, unless said otherwise; of a PE's threads one at
 * a time is in a collective call. Nothing of the library's blocks for ever: GDR_INIT_TIMEOUT
 * bounds bring-up, GDR_TIMEOUT every later wait. A loop of a kernel's own may run for ever, and the calls of
 * gdr/launch.h and gdr/local.h that wait for kernels (gdr_stream_sync, gdr_stream_destroy, gdr_event_sync, gdr_memcpy,
 * gdr_memset) wait for it as long; on the host device the log says so once in each GDR_TIMEOUT, a few times.
 *
 * A child that a PE forks is no PE: its calls are -GDR_ESTATE, it may end in any way, also by exit(), without effect on
 * the PE, and programs that either of them runs get no descriptor of gdr's own. On kernels before 5.12 a PE with a NIC
 * that has called gdr_buffer_register must not fork otherwise than by system(), popen() or posix_spawn(), or is to be
 * started with RDMAV_FORK_SAFE=1: the NIC would go on with pages that the child got.
 *
 * A process that has standard input, output or error closed has it open to /dev/null from gdr_init or
 * gdr_get_uniqueid on: what it prints would go into a file of the library's else. */
#ifndef GDR_HOST_H
#define GDR_HOST_H

#include <gdr/macros.h>
#include <gdr/status.h>
#include <gdr/version.h>

#ifndef __CUDACC_RTC__ /* which compiles device code alone */
GDR_EXTERN_C_BEGIN

/* ---- bring-up ---- */

struct gdr_bootstrap;

#define GDR_UNIQUEID_BYTES 128
/* Names a job to be: plain bytes, to be handed to every process of it by any means. Who has them can
 * join it: they hold a secret. */
typedef struct gdr_uniqueid {
	unsigned char bytes[GDR_UNIQUEID_BYTES];
} gdr_uniqueid_t;
#define GDR_UNIQUEID_INITIALIZER {{0}}

/* For processes that no launcher with PMIx has started. One process, in general the one that will be PE 0,
 * calls this before gdr_init_attr and hands the id to the others; each then passes it with its number.
 * Local. The process has a thread that listens at an address of its machine (GDR_UID_INTERFACE) for the
 * PEs, of which it need not be one; it must stay until they have called gdr_finalize. An id serves one
 * job. A process has 16 ids at most: one more ends the oldest with which no PE has come; where there is none,
 * -GDR_ENOMEM. -GDR_ESYSTEM: no address or port. */
GDR_API int gdr_get_uniqueid(gdr_uniqueid_t *id);

struct gdr_init_attr {
	size_t size;		/* sizeof(struct gdr_init_attr): lets it grow */
	size_t heap_size;	/* bytes per PE, the same on all, 1 MiB to 4 TiB; 0: GDR_HEAP_SIZE */
	const char *transports; /* "p2p,nic", "nic", ...; NULL: GDR_TRANSPORTS */
	struct gdr_bootstrap *bootstrap; /* NULL: chosen from the environment. Else
					  * owned by gdr from the call on, also on failure */
	const gdr_uniqueid_t *uniqueid; /* not NULL: the job of this id, whatever launcher there is, */
	int pe, n_pes;			/* in which this process is PE pe of n_pes, of which there may be 1024 */
	const void *mpi_comm; /* not NULL: address of an MPI_Comm, also of a part of the processes; its
			       * ranks become the PEs. MPI must be up from before until after
			       * gdr_finalize. Needs libgdr_mpi beside libgdr, built with the MPI
			       * of the program */
	unsigned int ctx_queues; /* queues to each PE for contexts, the same on all; 0: GDR_CTX_QUEUES */
};
#define GDR_INIT_ATTR_INITIALIZER {sizeof(struct gdr_init_attr), 0, 0, 0, 0, 0, 0, 0, 0}

/* Collective. Brings the library up; gdr_init() is gdr_init_attr(NULL). Fails on all PEs or on none, within
 * GDR_INIT_TIMEOUT and a second to leave the job. Calls of libfabric, libibverbs and CUDA know no limit: where one
 * takes longer, init ends behind it. May be called again after gdr_finalize. While a thread is in it, it is
 * -GDR_ESTATE in the others. Not thread-safe against gdr_finalize; programs may call MPI_Init before or after. */
GDR_API int gdr_init(void);
GDRI_NAMESAKES_BEGIN
GDR_API int gdr_init_attr(const struct gdr_init_attr *attr);
GDRI_NAMESAKES_END
/* Device code is compiled into the program: programs tell for which layout. */
GDR_API int gdri_init_abi(const struct gdr_init_attr *attr, int abi_version);
#define GDRI_INIT_NVSHMEM 0x10000 /* in abi_version, by compat/: a heap of the size that its programs count on */
/* For names of compat/ that return nothing: `call`, of a host thread and for PE pe (-1: no single one), failed.
 * Latched, counted and told as GDR_NVSHMEM_ERRORS says. */
GDR_API void gdri_unseen(const char *call, int pe, int status);
/* For names that may be called by each of several libraries of a program (compat/): counts the users of the library,
 * of which gdr_init makes the first, `add` more or less. More: device code that was loaded since finds it, too. How
 * many there are now; 0, too, when it is not initialised; -GDR_E* of device code that cannot use it. */
GDR_API int gdri_users(int add);
#define gdr_init() gdri_init_abi(0, GDR_ABI_VERSION)
#define gdr_init_attr(attr) gdri_init_abi((attr), GDR_ABI_VERSION)

/* Collective while all PEs live. Waits for kernels of the host device, completes what is outstanding, frees everything.
 * Kernels that do not end within GDR_INIT_TIMEOUT, nor within 4 s when their waits are told to end: -GDR_ETIMEOUT, if
 * nothing failed before. They are left with this PE's heap and queues until the process ends, and may call the library
 * no more. On the host device they are no later job's: no later gdr_init or gdr_finalize waits for them or returns
 * their status, what was queued behind them never runs, and gdr_stream_sync of their stream is -GDR_EABORTED, once and
 * before the next gdr_init. On a GPU the next gdr_finalize waits for them, too. Bounded also after an error, then it
 * does not wait for peers; but where they meet at a thread of this process (by
 * unique id, and at PE 0 with GDR_BOOTSTRAP=env), that stays for them, up to GDR_INIT_TIMEOUT. Returns the status of
 * the first operation of this PE that failed since gdr_init (a transfer, quiet, wait, barrier, collective call),
 * whatever has succeeded since; or -GDR_EPEERFAILED for one of another PE, or why a peer was not met, here or in an
 * earlier collective call. No failures are: tests, waits that end at a limit of their own (..._for), what was refused
 * on account of its arguments or for want of memory, and gdr_team_join. No other thread may be in a call of the
 * library. One of the host that has been in a wait for 1 ms is told to end it with -GDR_EABORTED: then that is the
 * status, if nothing failed before, and the PE's heap and queues stay until the process ends. -GDR_ENOTSUP, and
 * nothing is done, in a kernel of the host device. Idempotent: 0 when not initialised. */
GDR_API int gdr_finalize(void);

/* Flushes what this process has written to its streams, as exit() does, but for no longer than 2 s, and runs
 * no handlers of atexit(). Then asks the launcher to end the whole job with `code`; does not return while the
 * launcher can, else leaves the process with `code`. Of a job by unique id every process that is reached
 * flushes in the same way, whatever its threads are doing, and leaves with `code`. */
GDR_API void gdr_global_exit(int code);

/* Own number and number of PEs; -GDR_ESTATE outside init/finalize. In device code
 * it is gdr_my_pe() and gdr_n_pes() of gdr/device.h. */
GDR_API int gdr_host_my_pe(void);
GDR_API int gdr_host_n_pes(void);

/* Device code that the program loads itself (cuModuleLoad), compiled by NVRTC or with GDR_MODULE
 * defined: module is its CUmodule, of the context that gdr_init used. Local. After gdr_init, before
 * the module's first kernel; for a program without other CUDA kernels GDR_DEVICE=cuda says that there
 * will be some. -GDR_EINVAL: there is no gdr device code in it; -GDR_EVERSION: of another version;
 * -GDR_ENOTSUP: kernels do not run on GPUs here. _finalize before the module is unloaded, if that
 * is before gdr_finalize. -GDR_ETIMEOUT of either: the GPU did not take what was written to the module,
 * which may yet land: leave it loaded, and call _finalize again until it returns something else. */
struct CUmod_st;
GDR_API int gdr_module_init(struct CUmod_st *module);
GDR_API int gdr_module_finalize(struct CUmod_st *module);

/* Version of the library: major * 10000 + minor * 100 + patch. */
GDR_API int gdr_version(void);

/* ---- symmetric memory ---- */

/* Collective, same size (and alignment, a power of two, at most 2 MiB) on all PEs: PEs that
 * disagree get NULL on every PE. All give multiples of 256. Contents are indeterminate (calloc: zero).
 * Returns NULL on failure, gdr_host_status() says why. Size 0 gives NULL and no error. Implies a barrier. */
GDR_API void *gdr_malloc(size_t size);
GDR_API void *gdr_calloc(size_t count, size_t size);
GDR_API void *gdr_align(size_t alignment, size_t size);
/* For gdr/gdr.hpp: gdr_calloc at a multiple of alignment, as gdr_align takes it. */
GDR_API void *gdri_calloc(size_t alignment, size_t count, size_t size);

/* Collective, the same object on all PEs. NULL is a no-op. Implies a barrier, after
 * which no PE uses the memory. */
GDR_API int gdr_free(void *ptr);

/* Collective, the same object and size on all PEs: another size, in bytes, for an object of gdr_malloc or its like.
 * Each PE keeps what the object holds there, up to the smaller size; bytes behind that are indeterminate. Where the
 * memory behind it is free the object stays, else it moves, and has the alignment of gdr_malloc then: take the returned
 * address. ptr NULL is gdr_malloc(size); size 0 is gdr_free(ptr), and gives NULL. On failure NULL on all PEs,
 * gdr_host_status() says why, and the object is as it was; what gdr_symmetric_register gave is refused (-GDR_EINVAL),
 * for it is the program's. No operation on the object may be outstanding on any PE, nor a kernel use it. Implies a
 * barrier before the contents are taken, and where the object moves another one behind. */
GDR_API void *gdr_realloc(void *ptr, size_t size);

/* Address at which the object `ptr` of PE `pe` can be read and written with
 * plain loads and stores, or NULL when it is reached through the NIC only, when
 * ptr is not in the heap, or pe is out of range. */
GDR_API void *gdr_host_ptr(const void *ptr, int pe);
/* How full the own heap is. Local. */
struct gdr_heap_info {
	size_t size, used, largest_free; /* bytes */
	size_t objects;
};
GDR_API int gdr_heap_query(struct gdr_heap_info *info);

struct gdr_heap_object {
	void *addr;
	size_t size; /* rounded up to what the allocator gives */
};
/* Copies up to max objects, in order of address; returns the number that exist. */
GDR_API int gdr_heap_list(struct gdr_heap_object *out, int max);

/* Collective, len the same on all PEs. Makes the program's own pages [addr, addr + len), which may
 * lie elsewhere on each PE, part of the heap, and returns their symmetric address: from then on both
 * addresses name the same memory, in which everything is as it was. addr and len are multiples of the
 * page: memory of mmap and aligned_alloc, and static data (GDR_SYMMETRIC). The pages must be writable
 * and the process's own: MAP_SHARED is refused, for the file, mapping or process that shares them would keep the old
 * ones. Nobody may write to them during the call; a child that is forked later shares them. Device code
 * and transfers take the returned address. NULL on failure, on all PEs, gdr_host_status() says why. Where the
 * heap is a GPU's: memory that cuMemCreate gave, exportable as descriptor or as handle of the fabric, from its
 * begin; for PEs that are reached through queues GPUDirect-capable. Or, where all device code was compiled with
 * GDR_ANY_ADDRESS, memory of cudaMalloc, any part of an allocation at multiples of 16 bytes: then addr itself is
 * returned, and is the symmetric address; calls of host threads and streams take it, too (docs/cuda.md). */
GDR_API void *gdr_symmetric_register(void *addr, size_t len);
/* Collective: ptr is what gdr_symmetric_register returned; no operation on it may be outstanding. The
 * pages are the program's alone again, with what they hold; so they are after gdr_finalize. Implies a
 * barrier before and after. Where the system does not give a PE pages of its own, all get its error and
 * the memory stays registered: the call may be made again. Behind it no PE has memory of cudaMalloc open: it
 * may be freed. */
GDR_API int gdr_symmetric_unregister(void *ptr);
/* A static array of whole pages: static GDR_SYMMETRIC(double, field, 1000); sizeof(field) fits
 * gdr_symmetric_register. The size of its type is a power of two. */
#define GDR_SYMMETRIC_PAGE 65536 /* no machine has larger ones */
#define GDR_SYMMETRIC(type, name, count)                                                           \
	type name[((count) * sizeof(type) + GDR_SYMMETRIC_PAGE - 1) / GDR_SYMMETRIC_PAGE *          \
		  (GDR_SYMMETRIC_PAGE / sizeof(type))] __attribute__((aligned(GDR_SYMMETRIC_PAGE)))

/* Local. Makes len bytes at addr usable as source of put and, where its pages may be written now, destination
 * of get. At most 64 buffers at a time, not overlapping. addr must stay allocated
 * until gdr_buffer_unregister(addr); no operation on it may be outstanding then. */
GDR_API int gdr_buffer_register(void *addr, size_t len);
GDR_API int gdr_buffer_unregister(void *addr);
GDR_API int gdr_buffer_unregister_all(void);

/* ---- host-initiated transfers: any thread; contracts as in gdr/device.h; a PE that there is not, bytes that are not
 * in the symmetric heap, NULL with a length, and dst and src that overlap where pe is the own PE, unless they are
 * equal, get -GDR_EINVAL in every build. So do the library's own words in the heap, before the first object, on either
 * side. The local side is any other memory of the process, on every path: what is neither
 * in the heap nor registered goes through buffers of the library where the NIC has to read or write it, at the cost of
 * a copy; the forms with _nbi wait for it then. On the host device that way refuses a put from pages that may not be
 * read, and a get into pages that may not be written, with -GDR_EINVAL; where the calling thread itself copies (a peer
 * that is mapped, a put of up to 28 bytes) they end the process, as a memcpy would. Where kernels run on a GPU one
 * that returned -GDR_ETIMEOUT touches no memory of the caller's any more, but for memory of a GPU or pinned by CUDA,
 * which it may yet read or write; what was put may yet arrive. To or from a PE that is lost: -GDR_EPEERLOST
 * ---- */

GDR_API int gdr_host_put(void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_get(void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_put_nbi(void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_get_nbi(void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_fence(void);
GDR_API int gdr_host_quiet(void);

/* Collective. Completes all operations of the PE (host and device, all threads and
 * kernels that are ordered before the call), then waits for all PEs. Where a PE gives up waiting (-GDR_ETIMEOUT,
 * -GDR_EPEERLOST, -GDR_EABORTED) gdr_barrier_all, gdr_sync_all and the collective calls of hosts (gdr_malloc and its
 * kin, gdr_free) are over: on each PE they fail from there on, at once, with that status and the name of the PE to
 * blame, until gdr_finalize. Collectives on teams go on: each team, GDR_TEAM_WORLD too, keeps a status of its own
 * (gdr/coll.h). The status of a PE's first
 * call that failed so is that of all its later ones, whatever other PEs give up for. (A PE may yet
 * succeed in the call that another one gave up, if all had come to it; no later one succeeds.) On GPUs those
 * of kernels and streams and those of host threads break apart from each other. */
GDR_API int gdr_barrier_all(void);

/* ---- errors ---- */

/* Text of a status code (either sign); never NULL. */
GDR_API const char *gdr_strerror(int status);

/* What gdr_status() says, also of host threads and streams: the first failure of an operation whose call could not
 * return it, or of a queue, from when this PE sees it until a quiet reports it, or 0; -GDR_EPEERLOST from when a PE is
 * lost until gdr_finalize, on every path. Where nothing was latched: why the last call that gives symmetric memory
 * (gdr_malloc and its like, gdr_symmetric_register) returned NULL, once; no quiet or barrier tells that. */
GDR_API int gdr_host_status(void);

struct gdr_error {
	int status;	   /* -GDR_E* */
	int peer;	   /* PE to blame: addressed by the operation, or end of the chain of waits; -1 unknown */
	int waited_for;	   /* PE waited for directly; -1 unknown */
	const char *op;	   /* "put", "barrier", ...; static */
	uint32_t qpn;	   /* queue pair, 0: none */
	uint32_t wqe_index; /* modulo 2^16 */
	unsigned opcode;    /* of that WQE: mlx5 opcode; 0 (NOP) also where there is no WQE */
	unsigned syndrome, vendor_syndrome;
	int is_cause; /* 0: the completion seen may be a later flush of the real cause */
	uint64_t addr, len;   /* remote heap offset, bytes */
	uint64_t time_ns;     /* CLOCK_MONOTONIC */
	uint64_t waited_ns;
	char text[320]; /* all of it in words */
};

/* Copies up to max error records without removing them; returns the number that exist. Oldest first; with a
 * GPU its records come before the host's, each oldest first: time_ns tells. Any thread, also while kernels run. */
GDR_API int gdr_errors(struct gdr_error *out, int max);

/* Ends every wait of this PE, host and device, with -GDR_EABORTED, until the next gdr_init. */
GDR_API int gdr_abort_waits(void);

/* What was chosen at init, for programs that say what they run on. Strings are
 * valid until gdr_finalize. */
struct gdr_job_info {
	const char *device_kind; /* "host device" (CPU threads) or "cuda" */
	const char *bootstrap;	 /* "pmix", "single", "env", "uniqueid", "mpi" */
	const char *nic;	 /* "mlx5_0", NULL: no NIC in use */
	const char *nic_text;	 /* firmware, link layer, GID in words; NULL */
	int n_p2p, n_nic;	 /* PEs (oneself included) by path */
	int n_nodes;
	size_t heap_size;
	uint32_t n_queues, queue_depth; /* queue pairs of this PE */
	/* In words; where it is not the fastest way there is, why, and what to change. NULL: no queues. */
	const char *heap_memory;  /* "GPU memory (dma-buf)", "host memory" */
	const char *queue_memory; /* where the queues are: as heap_memory says it of the heap */
	const char *doorbell;	  /* who rings */
};
GDR_API int gdr_query(struct gdr_job_info *info);

GDR_EXTERN_C_END
#endif

#endif
