/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the CUDA driver that softhca stands in front of, and how the program comes to
 * call ours: by name, by dlsym(), or by cuGetProcAddress(). Nothing happens in them where the
 * memory is not softhca's.
 *
 * cuMemHostRegister: a UAR page of ours is memory, which the driver refuses to register as I/O
 * memory. It is registered as what it is, whole and once, however many registers of it the
 * program asks for.
 * cuMemGetHandleForAddressRange: which device address a dma-buf stands for cannot be asked later. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/driver/control.h"
#include "softhca/gpu/cuda_api.h"
#include "softhca/tools/log.h"
#include "softhca/driver/shim.h"
#include "softhca/tools/options.h"

enum { UAR_MAX = 512, DMABUFS = 4096 };

typedef cu_result (*register_fn)(void *p, size_t n, unsigned flags);
typedef cu_result (*unregister_fn)(void *p);
typedef cu_result (*handle_fn)(void *handle, cu_ptr p, size_t n, int type,
			       unsigned long long flags);
typedef cu_result (*get_fn)(const char *symbol, void **fn, int version, uint64_t flags);
typedef cu_result (*get_v2_fn)(const char *symbol, void **fn, int version, uint64_t flags,
			       int *status);

SHIM_EXPORT cu_result cuMemHostRegister(void *p, size_t n, unsigned flags);
SHIM_EXPORT cu_result cuMemHostRegister_v2(void *p, size_t n, unsigned flags);
SHIM_EXPORT cu_result cuMemHostUnregister(void *p);
SHIM_EXPORT cu_result cuMemGetHandleForAddressRange(void *handle, cu_ptr p, size_t n, int type,
						    unsigned long long flags);
SHIM_EXPORT cu_result cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags);
SHIM_EXPORT cu_result cuGetProcAddress_v2(const char *symbol, void **fn, int version,
					  uint64_t flags, int *status);
SHIM_EXPORT int madvise(void *p, size_t n, int advice);

void *(*hca_real_dlsym)(void *handle, const char *name);
void *hca_dlsym_ours(void *handle, const char *name);

/* ---- what stands behind ours ---- */

enum { REGISTER, REGISTER_V1, UNREGISTER, HANDLE, GET_V2, GET, FUNCTIONS };

static struct cuda_stand_in table[FUNCTIONS] = {
	[REGISTER] = { "cuMemHostRegister_v2", (void *)cuMemHostRegister_v2, NULL },
	[REGISTER_V1] = { "cuMemHostRegister", (void *)cuMemHostRegister, NULL },
	[UNREGISTER] = { "cuMemHostUnregister", (void *)cuMemHostUnregister, NULL },
	[HANDLE] = { "cuMemGetHandleForAddressRange", (void *)cuMemGetHandleForAddressRange, NULL },
	[GET_V2] = { "cuGetProcAddress_v2", (void *)cuGetProcAddress_v2, NULL },
	[GET] = { "cuGetProcAddress", (void *)cuGetProcAddress, NULL },
};

/* NULL: not ours. */
static struct cuda_stand_in *cuda_find_stand_in(const char *name)
{
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (!strcmp(name, table[i].name))
			return &table[i];
	for (size_t i = 0; i < n_cuda_waiting; i++)
		if (!strcmp(name, cuda_waiting[i].name))
			return &cuda_waiting[i];
	return NULL;
}

static void *take_place(struct cuda_stand_in *s, void *real)
{
	if (!s || !real)
		return real;
	/* The program that looked among all definitions may have found ours. */
	if (real != s->ours)
		__atomic_store_n(&s->behind, real, __ATOMIC_RELAXED);
	return s->ours;
}

void *cuda_real_symbol(void *lib, const char *name)
{
	/* Set by the first call of the dlsym() here. */
	return hca_real_dlsym ? hca_real_dlsym(lib, name) : dlsym(lib, name);
}

void *cuda_behind(struct cuda_stand_in *s)
{
	void *fn = __atomic_load_n(&s->behind, __ATOMIC_RELAXED), *lib;

	if (fn)
		return fn;
	fn = cuda_real_symbol(RTLD_NEXT, s->name);
	if (fn)
		return fn;
	/* Loaded where RTLD_NEXT does not look. */
	lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	if (!lib)
		return NULL;
	fn = cuda_real_symbol(lib, s->name);
	dlclose(lib); /* the program's own reference keeps it */
	return fn;
}

static void *real_cuda(int number)
{
	return cuda_behind(&table[number]);
}

/* ---- dlsym ---- */

/* The C library's first version on this processor: dlsym's before it left libdl. */
#ifdef __aarch64__
#define GLIBC_FIRST "GLIBC_2.17"
#else
#define GLIBC_FIRST "GLIBC_2.2.5"
#endif

/* NULL: ask the real one, which hca_real_dlsym is from here on. Not instrumented: sanitizers look
 * for libc's functions by this dlsym before they are ready themselves. */
__attribute__((used, no_sanitize("address", "thread", "undefined"))) void *
hca_dlsym_ours(void *handle, const char *name)
{
	void *real;

	if (!hca_real_dlsym) {
		real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (!real)
			real = dlvsym(RTLD_NEXT, "dlsym", GLIBC_FIRST);
		/* Relaxed: the same whoever stores it. */
		__atomic_store_n((void **)(void *)&hca_real_dlsym, real, __ATOMIC_RELAXED);
	}
	/* RTLD_NEXT has a meaning at its caller alone, who finds ours there if it is behind. */
	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT || !cuda_find_stand_in(name))
		return NULL;
	return take_place(cuda_find_stand_in(name), hca_real_dlsym(handle, name));
}

/* Ends in a jump, so that the real one sees its caller: RTLD_NEXT means what it meant. */
#ifdef __x86_64__
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call hca_dlsym_ours\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	jmp *hca_real_dlsym(%rip)\n"
	".cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#else /* __aarch64__; hint 34 is bti c */
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	hint #34\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl hca_dlsym_ours\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_restore 30\n"
	"	.cfi_restore 29\n"
	"	.cfi_def_cfa_offset 0\n"
	"	cbz x16, 1f\n"
	"	mov x0, x16\n"
	"	ret\n"
	"1:	adrp x16, hca_real_dlsym\n"
	"	ldr x16, [x16, #:lo12:hca_real_dlsym]\n"
	"	br x16\n"
	".cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#endif

/* There names have no suffix: the version says which is meant. Those for the default stream of each
 * thread are other functions. */
static struct cuda_stand_in *find_proc(const char *symbol, int version, uint64_t flags)
{
	struct cuda_stand_in *s = NULL;
	char name[64];

	if (flags & CU_PROC_PER_THREAD) {
		snprintf(name, sizeof(name), "%s_v2_ptsz", symbol);
		s = cuda_find_stand_in(name);
		snprintf(name, sizeof(name), "%s_ptsz", symbol);
		s = s ? s : cuda_find_stand_in(name);
		if (s)
			return s;
	}
	if (version >= 12000 || strcmp(symbol, "cuGetProcAddress")) {
		snprintf(name, sizeof(name), "%s_v2", symbol);
		s = cuda_find_stand_in(name);
	}
	if (!s)
		s = cuda_find_stand_in(symbol);
	if (flags & CU_PROC_PER_THREAD && s && s >= cuda_waiting && s < cuda_waiting + n_cuda_waiting)
		return NULL;
	return s;
}

cu_result cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
	get_fn real = (get_fn)real_cuda(GET);
	cu_result rc = real ? real(symbol, fn, version, flags) : CU_NOT_SUPPORTED;

	if (!rc && fn && *fn && symbol)
		*fn = take_place(find_proc(symbol, version, flags), *fn);
	return rc;
}

cu_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
			      int *status)
{
	get_v2_fn real = (get_v2_fn)real_cuda(GET_V2);
	cu_result rc = real ? real(symbol, fn, version, flags, status) : CU_NOT_SUPPORTED;

	if (!rc && fn && *fn && symbol)
		*fn = take_place(find_proc(symbol, version, flags), *fn);
	return rc;
}

/* ---- UAR pages ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint8_t *page;
	unsigned refs;
} uar[UAR_MAX];

struct place {
	uint64_t page;
	bool ours;
};

static bool cuda_look_at_map(void *arg, const struct maps_line *m)
{
	struct place *p = arg;

	if (p->page < m->start || p->page >= m->end)
		return m->start <= p->page;
	p->ours = m->ino && shim_file_kind(m->dev, m->ino) == SHIM_DEVICE;
	return false;
}

static bool is_uar(const void *p)
{
	struct place place = { .page = (uintptr_t)p & ~(hca_page() - 1) };

	return shim_files_any() && maps_each(cuda_look_at_map, &place) && place.ours;
}

static cu_result uar_register(register_fn real, uint8_t *page, unsigned flags)
{
	cu_result rc = CU_INVALID;
	int at = -1;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < UAR_MAX; i++) {
		if (uar[i].refs && uar[i].page == page) {
			uar[i].refs++;
			pthread_mutex_unlock(&lock);
			return 0;
		}
		if (!uar[i].refs && at < 0)
			at = i;
	}
	/* libmlx5 maps it for writing alone, the driver wants both. */
	if (at >= 0 && !mprotect(page, hca_page(), PROT_READ | PROT_WRITE))
		rc = real(page, hca_page(), flags);
	if (!rc) {
		uar[at].page = page;
		uar[at].refs = 1;
	}
	pthread_mutex_unlock(&lock);
	hca_debug(1, "UAR page at %p registered as memory: %d", (void *)page, rc);
	return rc;
}

cu_result cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
	register_fn real = (register_fn)real_cuda(REGISTER);
	uint8_t *page = (uint8_t *)p - ((uintptr_t)p & (hca_page() - 1));

	if (!real)
		return CU_NOT_SUPPORTED;
	if (flags & CU_REGISTER_IOMEMORY && n && (uint8_t *)p + n <= page + hca_page() && is_uar(p))
		return uar_register(real, page, flags & ~(unsigned)CU_REGISTER_IOMEMORY);
	return real(p, n, flags);
}

cu_result cuMemHostRegister(void *p, size_t n, unsigned flags)
{
	return cuMemHostRegister_v2(p, n, flags);
}

cu_result cuMemHostUnregister(void *p)
{
	unregister_fn real = (unregister_fn)real_cuda(UNREGISTER);
	uint8_t *page = (uint8_t *)p - ((uintptr_t)p & (hca_page() - 1));
	cu_result rc = CU_NOT_SUPPORTED;
	bool ours = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < UAR_MAX && !ours; i++) {
		if (!uar[i].refs || uar[i].page != page)
			continue;
		ours = true;
		rc = --uar[i].refs || !real ? 0 : real(page);
	}
	pthread_mutex_unlock(&lock);
	return ours || !real ? rc : real(p);
}

/* ---- dma-bufs ---- */

static struct {
	dev_t dev;
	ino_t ino;
	int fd;
	cu_ptr address;
	uint64_t len;
	bool pcie; /* the way that was asked for */
} dmabufs[DMABUFS];
static unsigned n_dmabufs; /* free-running */
/* Never held over a call of the driver: the one above is, and here hca_lock is held. */
static pthread_mutex_t dmabuf_lock = PTHREAD_MUTEX_INITIALIZER;

cu_result cuMemGetHandleForAddressRange(void *handle, cu_ptr p, size_t n, int type,
					unsigned long long flags)
{
	handle_fn real = (handle_fn)real_cuda(HANDLE);
	cu_result rc = real ? real(handle, p, n, type, flags) : CU_NOT_SUPPORTED;
	struct stat st;
	unsigned i;
	int fd;

	if (rc || type != CU_RANGE_DMABUF_FD)
		return rc;
	memcpy(&fd, handle, sizeof(fd));
	if (real_fstat(fd, &st))
		return rc;
	pthread_mutex_lock(&dmabuf_lock);
	i = n_dmabufs++ % DMABUFS;
	dmabufs[i].dev = st.st_dev;
	dmabufs[i].ino = st.st_ino;
	dmabufs[i].fd = fd;
	dmabufs[i].address = p;
	dmabufs[i].len = n;
	dmabufs[i].pcie = flags & CU_RANGE_PCIE;
	pthread_mutex_unlock(&dmabuf_lock);
	return rc;
}

/* By inode, and where old kernels give all dma-bufs the same one, by number, the latest first:
 * numbers are used again. */
static int find_dmabuf(int fd, const struct stat *st)
{
	int found = -1;

	for (unsigned k = 1; k <= n_dmabufs && k <= DMABUFS; k++) {
		unsigned i = (n_dmabufs - k) % DMABUFS;

		if (dmabufs[i].dev != st->st_dev || dmabufs[i].ino != st->st_ino)
			continue;
		if (dmabufs[i].fd == fd)
			return (int)i;
		if (found < 0)
			found = (int)i;
	}
	return found;
}

uint64_t cuda_dmabuf_address(int fd, uint64_t offset, uint64_t len)
{
	uint64_t address = 0;
	struct stat st;
	int i;

	if (!n_dmabufs || real_fstat(fd, &st))
		return 0;
	pthread_mutex_lock(&dmabuf_lock);
	i = find_dmabuf(fd, &st);
	if (i >= 0)
		address = offset <= dmabufs[i].len && len <= dmabufs[i].len - offset
				  ? dmabufs[i].address + offset
				  : UINT64_MAX;
	pthread_mutex_unlock(&dmabuf_lock);
	return address;
}

bool cuda_dmabuf_by_pcie(int fd)
{
	bool pcie = false;
	struct stat st;
	int i;

	if (!n_dmabufs || real_fstat(fd, &st))
		return false;
	pthread_mutex_lock(&dmabuf_lock);
	i = find_dmabuf(fd, &st);
	if (i >= 0)
		pcie = dmabufs[i].pcie;
	pthread_mutex_unlock(&dmabuf_lock);
	return pcie;
}

/* ---- fork ---- */

/* ibv_fork_init() has libibverbs keep registered memory out of children. The kernel refuses that
 * for some mappings of GPU drivers, which children do not get anyway. */
int madvise(void *p, size_t n, int advice)
{
	int rc = real_madvise(p, n, advice);
	Dl_info caller;

	if (!rc || (advice != MADV_DONTFORK && advice != MADV_DOFORK) || !shim_device_opened())
		return rc;
	if (!dladdr(__builtin_return_address(0), &caller) || !caller.dli_fname ||
	    !strstr(caller.dli_fname, "libibverbs") || !cuda_loaded())
		return rc;
	return 0;
}
