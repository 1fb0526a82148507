/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads memory of another process where it lies (process_vm_readv(2)), so that
 * long payloads are copied once. The kernel allows that to whom it would allow
 * to trace the process; where it does not, packets carry copies.
 *
 * A process number can pass to another process. So each read takes a word along
 * that only the right one has at that place. */
#include "softhca/engine/dp.h"

#include "softhca/memory/guest.h"

enum { PIECES = PKT_MAX_IOV + 2 };

bool peer_memory_probe(struct peer_memory *m)
{
	m->readable = m->pid > 0;
	return peer_memory_read(m, NULL, 0, NULL, 0);
}

/* Splits off the bytes of the last aligned word, as guest_copy() does: a program that polls
 * on the end of a message finds the rest placed. */
static size_t split_tail(struct iovec *last)
{
	size_t t = ((uintptr_t)last->iov_base + last->iov_len) & 7;

	if (!t)
		t = 8;
	if (t > last->iov_len)
		t = last->iov_len;
	last->iov_len -= t;
	return t;
}

bool peer_memory_read(struct peer_memory *m, const struct iovec *dst, int ndst,
		      const struct iovec *src, int nsrc)
{
	struct iovec to[PIECES], from[PIECES];
	uint64_t word = ~m->word;
	uint8_t tail[8], *end = NULL;
	size_t want = sizeof(word), t = 0;
	int n = 0;

	if (!m->readable || ndst > PKT_MAX_IOV || nsrc > PKT_MAX_IOV)
		return false;
	from[0] = (struct iovec){ (void *)(uintptr_t)m->at, sizeof(word) };
	to[n++] = (struct iovec){ &word, sizeof(word) };
	for (int i = 0; i < nsrc; i++)
		from[i + 1] = src[i];
	for (int i = 0; i < ndst; i++) {
		want += dst[i].iov_len;
		to[n++] = dst[i];
	}
	if (ndst) {
		t = split_tail(&to[n - 1]);
		end = (uint8_t *)to[n - 1].iov_base + to[n - 1].iov_len;
		to[n++] = (struct iovec){ tail, t };
	}
	if (process_vm_readv(m->pid, to, (unsigned)n, from, (unsigned)nsrc + 1, 0) !=
		    (ssize_t)want ||
	    word != m->word) {
		m->readable = false;
		return false;
	}
	if (!t)
		return true;
	guest_store_small(end, tail, t); /* release: after what the kernel has placed */
	STAT_INC(shm_reads);
	return true;
}
