/* SPDX-License-Identifier: BSD-3-Clause */
/* A program may unmap memory that it has registered. Hardware never sees that, for the kernel keeps the pages; the
 * engine, which reads and writes by the program's own addresses, would end the process. So each page of a region is
 * read once before it is used. The one instruction that does so may fault: the handler of the signal goes on behind it,
 * at no cost where the memory is there.
 *
 * Queues, doorbell records, and what is unmapped behind that look, fault where they are used. Such a page is held by
 * the device all the same: the handler puts one of zeroes there, and the instruction goes on. What was in it is
 * lost. */
#include "softhca/memory/probe.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "softhca/tools/log.h"
#include "softhca/tools/options.h"

enum { MOST = 64 /* pages */ };

/* In this file alone. The first instruction of probe_byte may fault, and all of probe_write ahead of its end.
 * probe_write leaves the byte as it is, whoever else writes it meanwhile; it pairs with nothing. */
bool probe_byte(const uint8_t *at);
bool probe_write(const uint8_t *at);
void probe_write_end(void);
void probe_nothing(void);

#if defined(__x86_64__)
#define LOAD_BYTE "	movb	(%rdi), %al\n"
#define STORE_BYTE "	lock orb	$0, (%rdi)\n"
#define RETURN_1 "	movl	$1, %eax\n	ret\n"
#define RETURN_0 "	xorl	%eax, %eax\n	ret\n"
#define FAULT_PC(context) ((context)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define LOAD_BYTE "	ldrb	w1, [x0]\n"
#define STORE_BYTE "	ldxrb	w1, [x0]\n	stxrb	w2, w1, [x0]\n	cbnz	w2, probe_write\n"
#define RETURN_1 "	mov	w0, 1\n	ret\n"
#define RETURN_0 "	mov	w0, 0\n	ret\n"
#define FAULT_PC(context) ((context)->uc_mcontext.pc)
#else
#error "softhca runs on x86-64 and arm64"
#endif

__asm__(".pushsection .text\n"
	".hidden probe_byte\n.globl probe_byte\n.type probe_byte,%function\n"
	"probe_byte:\n"
	LOAD_BYTE
	RETURN_1
	".size probe_byte,.-probe_byte\n"
	".hidden probe_write\n.globl probe_write\n.type probe_write,%function\n"
	"probe_write:\n"
	STORE_BYTE
	".hidden probe_write_end\n.globl probe_write_end\n"
	"probe_write_end:\n"
	RETURN_1
	".hidden probe_nothing\n.globl probe_nothing\n"
	"probe_nothing:\n"
	RETURN_0
	".size probe_write,.-probe_write\n"
	".popsection\n");

static struct sigaction before_segv, before_bus;
static bool (*page_is_held)(uintptr_t page);
static uintptr_t page_size = 4096; /* the least that there is; probe_arm() asks. With hca_lock */

static void pass_on(const struct sigaction *before, int sig, siginfo_t *info, void *context)
{
	if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(sig, info, context);
	} else if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) {
		signal(sig, SIG_DFL); /* the instruction faults once more */
		if (info->si_code <= 0) /* of kill(2): nothing does */
			raise(sig);
	} else {
		before->sa_handler(sig);
	}
}

/* Not where another mapping forbids the access, which is the program's to say. The kernel's call, not the C library's,
 * which softhca watches. */
static bool put_page(int sig, const siginfo_t *info)
{
	bool cut = sig == SIGBUS && info->si_code == BUS_ADRERR;
	uintptr_t size = (uintptr_t)host_page(), page = (uintptr_t)info->si_addr & ~(size - 1);
	static bool said;
	int err = errno;
	long at;

	if (!page_is_held || !(cut || (sig == SIGSEGV && info->si_code == SEGV_MAPERR)) || !page_is_held(page))
		return false;
	at = syscall(SYS_mmap, page, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (cut ? MAP_FIXED : MAP_FIXED_NOREPLACE), -1, 0L);
	if (at == -1 && errno != EEXIST) /* else something else is mapped there by now */
		return false;
	if (!said)
		hca_warn("the memory at %p is unmapped or cut off, and a queue or region of the device still uses it: "
			 "the device finds zeroes there", info->si_addr);
	said = true;
	errno = err;
	return true;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uintptr_t pc = (uintptr_t)FAULT_PC(uc);

	if (pc == (uintptr_t)probe_byte || (pc >= (uintptr_t)probe_write && pc < (uintptr_t)probe_write_end))
		FAULT_PC(uc) = (__typeof__(FAULT_PC(uc)))(uintptr_t)probe_nothing;
	else if (!put_page(sig, info))
		pass_on(sig == SIGSEGV ? &before_segv : &before_bus, sig, info, context);
}

static void probe_take_signal(int sig, struct sigaction *before)
{
	struct sigaction now, mine = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (sigaction(sig, NULL, &now) || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
		return;
	*before = now;
	sigaction(sig, &mine, NULL);
}

void probe_arm(bool (*held)(uintptr_t page))
{
	page_size = (uintptr_t)host_page();
	page_is_held = held;
	probe_take_signal(SIGSEGV, &before_segv);
	probe_take_signal(SIGBUS, &before_bus);
}

void probe_unblock(sigset_t *set)
{
	sigdelset(set, SIGSEGV);
	sigdelset(set, SIGBUS);
}

bool page_has(uintptr_t page, const void *start, uint64_t len)
{
	uintptr_t from = (uintptr_t)start & ~(uintptr_t)(host_page() - 1);

	return start && len && page >= from && page < (uintptr_t)start + len;
}

bool probe_mapped(const uint8_t *va, uint64_t len, bool write)
{
	bool (*probe)(const uint8_t *at) = write ? probe_write : probe_byte;
	const uint8_t *last = va + len - 1, *at = va;

	if (!len)
		return true;
	for (unsigned i = 0; i < MOST && at < last; i++) {
		if (!probe(at))
			return false;
		at = (const uint8_t *)((uintptr_t)at | (page_size - 1)) + 1;
	}
	return probe(last);
}
