// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* process_vm_readv */
#include "runtime/ofi/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda_lane.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/net/execute.h"

#define MEMORY_LANE   ((size_t)1 << 20)   /* bytes of pinned memory */
#define MEMORY_SOURCE ((size_t)128 << 10) /* those of a message, with the gaps in which its words lie as in memory */

int gdri_ofi_memory_open(struct gdri_ofi_memory *m, struct gdri_ofi_fabric *fabric, struct gdri_cuda *cuda, int copy_ms)
{
	int i, ret;

	pthread_mutex_init(&m->lock, NULL);
	m->fabric = fabric;
	m->list = GDRI_OFI_KEY_LIST;
	m->cuda = cuda;
	if (!cuda)
		return 0;
	m->temp = malloc(GDRI_OFI_TEMP);
	if (!m->temp)
		return gdri_fail(-GDR_ENOMEM, "ofi: out of memory");
	ret = gdri_lane_open(cuda, MEMORY_LANE, copy_ms, &m->lane);
	for (i = 0; i < GDRI_OFI_SOURCES && !ret; i++)
		ret = gdri_lane_open(cuda, MEMORY_SOURCE, copy_ms, &m->sources[i].lane);
	return ret;
}

void gdri_ofi_memory_close(struct gdri_ofi_memory *m)
{
	int i;

	for (i = 0; i < m->n; i++)
		gdri_ofi_mr_close(m->fabric, &m->regions[i].mr);
	for (i = 0; i < GDRI_OFI_BUFFERS; i++)
		gdri_ofi_mr_close(m->fabric, &m->buffers[i].mr);
	gdri_lane_close(m->lane);
	for (i = 0; i < GDRI_OFI_SOURCES; i++)
		gdri_lane_close(m->sources[i].lane);
	free(m->temp);
	pthread_mutex_destroy(&m->lock);
}

static int memory_refused(struct gdri_ofi_fabric *f, void *addr, size_t len, int rc)
{
	return gdri_fail(-GDR_ENOTSUP, "ofi: %s does not take %zu bytes at %p: %s",
			 f->info->fabric_attr->prov_name, len, addr, f->lib.strerror(-rc));
}

static bool memory_is_gpus(const struct gdri_ofi_memory *m, const void *addr)
{
	return m->cuda && gdri_cuda_is_device(m->cuda, addr);
}

/* NULL: it goes by requests. */
static struct fid_mr *memory_register_gpus(struct gdri_ofi_memory *m, void *addr, size_t len, uint64_t access)
{
	struct gdri_ofi_fabric *f = m->fabric;
	struct fid_mr *mr = NULL;
	int rc;

	if (!f->reaches_gpus)
		return NULL;
	rc = gdri_ofi_mr_open(f, addr, len, gdri_cuda_ordinal(m->cuda, addr), access, &mr);
	if (rc && !m->refused)
		gdri_warn("ofi: %s does not take %zu bytes of a GPU at %p (%s): the CPU copies what such memory has",
			  f->info->fabric_attr->prov_name, len, addr, f->lib.strerror(-rc));
	m->refused |= rc != 0;
	return mr;
}

/* ---- own parts ---- */

static int memory_register(struct gdri_ofi_memory *m, struct gdri_ofi_region *r, size_t len, uint64_t offset)
{
	const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE;
	int rc = 0;

	r->part = (struct gdri_ofi_part){.offset = offset, .len = len};
	r->staged = memory_is_gpus(m, r->own);
	if (r->staged)
		r->mr = memory_register_gpus(m, r->own, len, access);
	else
		rc = gdri_ofi_mr_open(m->fabric, r->own, len, GDRI_OFI_HOST, access, &r->mr);
	if (rc)
		return memory_refused(m->fabric, r->own, len, rc);
	r->part.no_rma = !r->mr;
	if (!r->mr)
		return 0;
	r->part.addr = m->fabric->mr_virt ? (uintptr_t)r->own : 0;
	rc = gdri_ofi_mr_tell(m->fabric, r->mr, &r->part.key, r->part.raw);
	if (!rc)
		return 0;
	gdri_ofi_mr_close(m->fabric, &r->mr);
	return memory_refused(m->fabric, r->own, len, rc);
}

int gdri_ofi_memory_add(struct gdri_ofi_memory *m, void *addr, size_t len, uint64_t offset)
{
	struct gdri_ofi_region r = {.own = addr, .change = OFI_COMES};
	int i, ret;

	for (i = 0; i < m->n && m->regions[i].own; i++)
		;
	if (i == gdri_ofi_most_parts(m->fabric))
		return gdri_fail(-GDR_ENOMEM, "ofi: more than %d parts of a heap", i);
	ret = memory_register(m, &r, len, offset);
	if (ret)
		return ret;
	pthread_mutex_lock(&m->lock);
	m->regions[i] = r;
	m->n += i == m->n;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

void gdri_ofi_memory_begin(struct gdri_ofi_memory *m)
{
	int i;

	pthread_mutex_lock(&m->lock);
	m->list++;
	for (i = 0; i < m->n; i++)
		m->regions[i].change = OFI_STAYS;
	pthread_mutex_unlock(&m->lock);
}

void gdri_ofi_memory_leave(struct gdri_ofi_memory *m, uint64_t offset, size_t len)
{
	int i;

	for (i = 0; i < m->n; i++)
		if (m->regions[i].own && m->regions[i].part.offset - offset < len)
			m->regions[i].change = OFI_GOES;
}

void gdri_ofi_memory_drop(struct gdri_ofi_memory *m, enum gdri_ofi_change what)
{
	struct fid_mr *left[GDRI_OFI_PARTS];
	int i, n = 0;

	pthread_mutex_lock(&m->lock);
	for (i = 0; i < m->n; i++) {
		if (m->regions[i].change != what || !m->regions[i].own)
			continue;
		left[n++] = m->regions[i].mr;
		m->regions[i].mr = NULL;
		m->regions[i].own = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	while (n--)
		gdri_ofi_mr_close(m->fabric, &left[n]);
}

uint32_t gdri_ofi_memory_list(struct gdri_ofi_memory *m, struct gdri_ofi_part *parts, uint32_t *n)
{
	uint32_t list;
	int i;

	*n = 0;
	pthread_mutex_lock(&m->lock);
	for (i = 0; i < m->n; i++)
		if (m->regions[i].own)
			parts[(*n)++] = m->regions[i].part;
	list = m->list;
	pthread_mutex_unlock(&m->lock);
	return list;
}

/* ---- buffers ---- */

int gdri_ofi_buffer_add(struct gdri_ofi_memory *m, void *addr, size_t len, uint32_t *lkey,
			bool *read_only, struct gdri_ofi_buffer **out)
{
	bool staged = memory_is_gpus(m, addr);
	struct fid_mr *mr = NULL;
	uint32_t i;
	int rc = 0;

	if (read_only)
		*read_only = false; /* else who registers has looked: host/register.c */
	if (staged)
		mr = memory_register_gpus(m, addr, len, FI_READ | FI_WRITE);
	else if (m->fabric->mr_local)
		rc = gdri_ofi_mr_open(m->fabric, addr, len, GDRI_OFI_HOST, FI_READ | FI_WRITE, &mr);
	if (rc && read_only)
		*read_only = !(rc = gdri_ofi_mr_open(m->fabric, addr, len, GDRI_OFI_HOST, FI_WRITE, &mr));
	if (rc)
		return memory_refused(m->fabric, addr, len, rc);
	pthread_mutex_lock(&m->lock);
	for (i = 0; i < GDRI_OFI_BUFFERS && m->buffers[i].len; i++)
		;
	if (i < GDRI_OFI_BUFFERS)
		m->buffers[i] = (struct gdri_ofi_buffer){(uintptr_t)addr, len, mr, staged};
	pthread_mutex_unlock(&m->lock);
	if (i == GDRI_OFI_BUFFERS) {
		gdri_ofi_mr_close(m->fabric, &mr);
		return gdri_fail(-GDR_ENOMEM, "ofi: more than %d registered buffers",
				 GDRI_OFI_BUFFERS);
	}
	*lkey = GDRI_OFI_KEY_BUFFER + i;
	*out = &m->buffers[i];
	return 0;
}

void gdri_ofi_buffer_drop(struct gdri_ofi_memory *m, struct gdri_ofi_buffer *b)
{
	struct fid_mr *mr;

	pthread_mutex_lock(&m->lock);
	mr = b->mr;
	*b = (struct gdri_ofi_buffer){0};
	pthread_mutex_unlock(&m->lock);
	gdri_ofi_mr_close(m->fabric, &mr);
}

/* ---- access ---- */

static bool row_heap(const struct gdri_ofi_memory *m, uint64_t offset, struct gdri_ofi_row *out)
{
	const struct gdri_ofi_region *r;
	int i;

	for (i = 0; i < m->n; i++) {
		r = &m->regions[i];
		if (!r->own || offset - r->part.offset >= r->part.len)
			continue;
		offset -= r->part.offset;
		*out = (struct gdri_ofi_row){r->own + offset, r->part.len - offset,
					     r->mr ? fi_mr_desc(r->mr) : NULL, r->staged, !r->mr};
		return true;
	}
	return false;
}

static bool row_buffer(const struct gdri_ofi_memory *m, uint32_t i, uint64_t addr,
		       struct gdri_ofi_row *out)
{
	const struct gdri_ofi_buffer *b = i < GDRI_OFI_BUFFERS ? &m->buffers[i] : NULL;

	if (!b || addr - b->addr >= b->len)
		return false;
	*out = (struct gdri_ofi_row){(uint8_t *)(uintptr_t)addr, b->len - (addr - b->addr),
				     b->mr ? fi_mr_desc(b->mr) : NULL, b->staged, b->staged && !b->mr};
	return true;
}

static bool row_page(const struct gdri_ofi_page *p, uint64_t offset, struct gdri_ofi_row *out)
{
	if (offset >= p->len)
		return false;
	*out = (struct gdri_ofi_row){p->at + offset, p->len - offset, NULL, false, true};
	return true;
}

bool gdri_ofi_row(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, struct gdri_ofi_row *out)
{
	bool is;

	pthread_mutex_lock(&m->lock);
	if (lkey == GDRI_OFI_KEY_HEAP)
		is = row_heap(m, addr, out);
	else if (lkey == GDRI_OFI_KEY_PAGE)
		is = row_page(&m->page, addr, out);
	else
		is = row_buffer(m, lkey - GDRI_OFI_KEY_BUFFER, addr, out);
	pthread_mutex_unlock(&m->lock);
	return is;
}

bool gdri_ofi_has(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, uint64_t len)
{
	struct gdri_ofi_row row;

	for (; len; len -= row.len, addr += row.len) {
		if (!gdri_ofi_row(m, lkey, addr, &row))
			return false;
		if (row.len >= len)
			return true;
	}
	return true;
}

/* A buffer is the program's, which may have unmapped it: the kernel copies, and says so in place of a signal. false:
 * it is not there. */
static bool copy_guarded(const struct gdri_ofi_row *row, void *data, bool stores)
{
	struct iovec own = {data, row->len}, theirs = {row->at, row->len};
	ssize_t n;

	if (stores)
		n = process_vm_writev(getpid(), &own, 1, &theirs, 1, 0);
	else
		n = process_vm_readv(getpid(), &own, 1, &theirs, 1, 0);
	if (n >= 0 || errno == EFAULT)
		return n == (ssize_t)row->len;
	memcpy(stores ? row->at : data, stores ? data : row->at,
	       row->len); /* a sandbox without such calls */
	return true;
}

/* Between data and the place. */
static bool memory_copy(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, uint8_t *data,
			uint64_t len, bool stores)
{
	struct gdri_ofi_row row;

	for (; len; len -= row.len, addr += row.len, data += row.len) {
		if (!gdri_ofi_row(m, lkey, addr, &row))
			return false;
		if (row.len < len && !gdri_ofi_has(m, lkey, addr + row.len, len - row.len))
			return false;
		row.len = row.len < len ? row.len : len;
		if (row.staged) {
			gdri_ofi_stage(m, &row, data, stores);
			continue;
		}
		if (stores)
			gdri_ofi_stage_before(m);
		if (lkey >= GDRI_OFI_KEY_BUFFER && !copy_guarded(&row, data, stores))
			return false;
		if (lkey < GDRI_OFI_KEY_BUFFER)
			gdri_net_move(stores ? row.at : data, stores ? data : row.at, row.len);
	}
	return true;
}

bool gdri_ofi_store(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, const void *data,
		    uint64_t len)
{
	return memory_copy(m, lkey, addr, (uint8_t *)(uintptr_t)data, len, true);
}

bool gdri_ofi_load(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, void *data,
		   uint64_t len)
{
	return memory_copy(m, lkey, addr, data, len, false);
}

/* ---- lists of parts ---- */

const struct gdri_ofi_part *gdri_ofi_find(const struct gdri_ofi_part *parts, uint32_t n,
					  uint64_t offset, uint64_t *row)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (offset - parts[i].offset >= parts[i].len)
			continue;
		*row = parts[i].len - (offset - parts[i].offset);
		return &parts[i];
	}
	return NULL;
}

bool gdri_ofi_covers(const struct gdri_ofi_part *parts, uint32_t n, uint64_t offset, uint64_t len)
{
	uint64_t row;

	for (; len; len -= row, offset += row) {
		if (!gdri_ofi_find(parts, n, offset, &row))
			return false;
		if (row >= len)
			return true;
	}
	return true;
}
