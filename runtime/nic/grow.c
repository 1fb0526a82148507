// SPDX-License-Identifier: BSD-3-Clause
/* A heap of several memory regions: indirect keys (PRM, "Memory Key", access mode KLM) over all of them, whose
 * addresses are offsets in the heap as those of the regions are. An access may lie in two of them. There are two keys,
 * one over strict regions and one over relaxed ones: each region stands there twice, like the first. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr/host.h>
#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

#define PIECE	  ((uint64_t)1 << 31) /* the most that one entry holds: DPDK, MLX5_MAX_KLM_BYTE_COUNT */
#define ATTRIBUTE 65535u /* bytes of a command that the kernel's interface carries */

enum { STRICT, RELAXED };

static struct ibv_mr *nic_grow_region(const struct gdri_nic *nic, int i, int which)
{
	if (i < 0)
		return which == RELAXED ? nic->heap_data : nic->heap_first;
	return which == RELAXED ? nic->parts[i].relaxed : nic->parts[i].mr;
}

/* Entries for len bytes from `from` on; at NULL: only counted. */
static uint32_t nic_put_pieces(uint8_t **at, uint32_t key, uint64_t from, uint64_t len)
{
	uint64_t piece;
	uint32_t n = 0;

	for (uint64_t done = 0; done < len; done += piece, n++) {
		piece = len - done < PIECE ? len - done : PIECE;
		if (!*at)
			continue;
		gdri_prm_set(*at, PRM_KLM_COUNT, piece);
		gdri_prm_set(*at, PRM_KLM_KEY, key);
		gdri_prm_set(*at, PRM_KLM_ADDRESS, from + done);
		*at += PRM_KLM_BYTES;
	}
	return n;
}

/* The first region's, then the parts' as their offsets grow; where there is nothing, entries that nobody may use. */
static uint32_t put_all(const struct gdri_nic *nic, int which, uint8_t *at, uint64_t *len)
{
	uint32_t n = nic_put_pieces(&at, nic_grow_region(nic, -1, which)->lkey, 0, nic->heap_first->length);
	const struct gdri_nic_part *p;

	*len = nic->heap_first->length;
	for (int i = 0; i < nic->n_parts; i++) {
		p = &nic->parts[i];
		if (p->leaves)
			continue;
		n += nic_put_pieces(&at, nic->hole->lkey, nic->hole->length, p->offset - *len);
		n += nic_put_pieces(&at, nic_grow_region(nic, i, which)->lkey, p->from, p->mr->length);
		*len = p->offset + p->mr->length;
	}
	return n;
}

static void nic_fill_key(const struct gdri_nic *nic, int which, uint8_t *in, uint32_t n)
{
	void *mkc = gdri_prm_at(in, PRM_CREATE_MKEY_MKC);
	uint64_t len;

	put_all(nic, which, in + PRM_CREATE_MKEY_IN_BYTES, &len);
	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_CREATE_MKEY);
	gdri_prm_set(in, PRM_CREATE_MKEY_ACTUAL, n);
	gdri_prm_set(mkc, PRM_MKC_MODE, PRM_MKC_KLM);
	gdri_prm_set(mkc, PRM_MKC_RELAXED, which == RELAXED || nic->caps.relaxed_only);
	/* Firmware refuses atomics over relaxed regions: UCX, pull request 8218. They go by the strict key. */
	gdri_prm_set(mkc, PRM_MKC_A, which == STRICT);
	gdri_prm_set(mkc, PRM_MKC_RW, 1);
	gdri_prm_set(mkc, PRM_MKC_RR, 1);
	gdri_prm_set(mkc, PRM_MKC_LW, 1);
	gdri_prm_set(mkc, PRM_MKC_LR, 1);
	gdri_prm_set(mkc, PRM_MKC_QPN, 0xffffff); /* of no queue in particular */
	gdri_prm_set(mkc, PRM_MKC_PD, nic->pdn);
	gdri_prm_set(mkc, PRM_MKC_LEN, len);
	gdri_prm_set(mkc, PRM_MKC_OCTOWORDS, n);
}

/* Behind entries for offsets where there is nothing: a region that exists, as firmware may want of every entry, grants
 * nothing to others, and ends before the address that the entries name. */
static int nic_make_hole(struct gdri_nic *nic)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ret = 0;

	if (nic->hole)
		return 0;
	nic->hole_page = aligned_alloc(page, page);
	if (!nic->hole_page)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	memset(nic->hole_page, 0, page);
	nic->hole = gdri_nic_mr_plain(nic, "registering the page behind holes of the heap", nic->hole_page, page, 0,
				      0, &ret);
	return ret;
}

static int nic_check_entries(const struct gdri_nic *nic, uint32_t n, uint64_t len)
{
	uint32_t most = (ATTRIBUTE - PRM_CREATE_MKEY_IN_BYTES) / PRM_KLM_BYTES & ~3u;

	if (nic->caps.log_max_klms < 16 && most > 1u << nic->caps.log_max_klms)
		most = 1u << nic->caps.log_max_klms;
	if (n <= most)
		return 0;
	return gdri_fail(-GDR_ENOTSUP,
			 "%s: a heap of %llu bytes has %u pieces, and a memory key takes %u "
			 "(log_max_klm_list_size %u): lower GDR_HEAP_SIZE and GDR_HEAP_MAX",
			 nic->name, (unsigned long long)len, n, most, nic->caps.log_max_klms);
}

static int nic_check_joint(const struct gdri_nic *nic)
{
	if (!nic->caps.no_indirect_atomic)
		return 0;
	return gdri_fail(-GDR_ENOTSUP,
			 "%s: a heap of several parts needs atomics by an indirect memory key, which the device "
			 "refuses (umr_modify_atomic_disabled): set GDR_HEAP_SIZE to what the program needs, and "
			 "register no memory as symmetric", nic->name);
}

/* Over all that is registered, but for what leaves. */
static int create_key(struct gdri_nic *nic, int which, struct mlx5dv_devx_obj **mkey, uint32_t *key)
{
	uint8_t out[PRM_CREATE_MKEY_OUT_BYTES], *in;
	uint64_t len;
	uint32_t n = (put_all(nic, which, NULL, &len) + 3) & ~3u; /* those without length fill the last 64 bytes */
	int ret = nic_check_entries(nic, n, len);

	if (ret)
		return ret;
	in = calloc(1, PRM_CREATE_MKEY_IN_BYTES + (size_t)n * PRM_KLM_BYTES);
	if (!in)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	nic_fill_key(nic, which, in, n);
	ret = gdri_nic_obj_create(nic, "CREATE_MKEY (a heap of several parts)", in,
				  PRM_CREATE_MKEY_IN_BYTES + (size_t)n * PRM_KLM_BYTES, out, sizeof(out), mkey);
	*key = (uint32_t)gdri_prm_get(out, PRM_CREATE_MKEY_OUT_INDEX) << 8;
	free(in);
	return ret;
}

static int nic_join_keys(struct gdri_nic *nic, struct gdri_mr_keys *keys)
{
	int ret = nic_check_joint(nic);
	struct gdri_nic_joint *j;

	if (!ret)
		ret = nic_make_hole(nic);
	if (ret)
		return ret;
	j = calloc(1, sizeof(*j));
	if (!j)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	j->next = nic->joints;
	nic->joints = j;
	ret = create_key(nic, STRICT, &j->mkey[STRICT], &keys->lkey);
	keys->rkey_data = keys->rkey_sync = keys->lkey;
	if (!ret && nic->relaxed)
		ret = create_key(nic, RELAXED, &j->mkey[RELAXED], &keys->rkey_data);
	return ret;
}

static void part_destroy(struct gdri_nic *nic, int i)
{
	struct gdri_nic_part *p = &nic->parts[i];

	if (p->relaxed)
		ibv_dereg_mr(p->relaxed);
	ibv_dereg_mr(p->mr);
	nic->n_parts--;
	memmove(p, p + 1, (size_t)(nic->n_parts - i) * sizeof(*p));
}

/* The kernel wants address and iova at the same place of a page. Memory of cudaMalloc may begin within one: its regions
 * go by its own address, and the entry of the indirect key leads from the offset there. */
static uint64_t part_begin(const uint8_t *addr, uint64_t offset)
{
	return ((uintptr_t)addr - offset) % GDR_SYMMETRIC_PAGE ? (uintptr_t)addr : offset;
}

static int register_part(struct gdri_nic *nic, uint8_t *addr, size_t len, uint64_t offset)
{
	struct gdri_nic_part p = {.offset = offset, .from = part_begin(addr, offset), .is_new = true};
	int ret = 0, at;

	if (nic->n_parts == GDRI_NIC_PARTS)
		return gdri_fail(-GDR_ENOMEM, "%s: more than %d memory regions of a heap", nic->name, GDRI_NIC_PARTS);
	p.mr = gdri_nic_mr_heap(nic, addr, len, p.from, false, &ret);
	if (!p.mr)
		return ret;
	if (nic->relaxed) {
		p.relaxed = gdri_nic_mr_heap(nic, addr, len, p.from, true, &ret);
		if (!p.relaxed) {
			ibv_dereg_mr(p.mr);
			return ret;
		}
	}
	for (at = nic->n_parts; at && nic->parts[at - 1].offset > offset; at--)
		nic->parts[at] = nic->parts[at - 1];
	nic->parts[at] = p;
	nic->n_parts++;
	return 0;
}

int gdri_nic_grow(struct gdri_net *net, void *addr, size_t len, uint64_t offset, struct gdri_mr_keys *keys)
{
	struct gdri_nic *nic = gdri_nic_of(net);
	struct gdri_nic_joint *before = nic->joints;
	uint8_t *at = addr;
	size_t slice;
	int i, ret = 0;

	for (i = 0; i < nic->n_parts; i++)
		nic->parts[i].is_new = false;
	for (; len && !ret; len -= slice, at += slice, offset += slice) {
		slice = gdri_nic_mr_slice(nic, len);
		ret = register_part(nic, at, slice, offset);
	}
	if (!ret)
		ret = nic_join_keys(nic, keys);
	if (ret && nic->joints == before) /* there is none to take back */
		gdri_nic_forget_new(nic);
	else if (ret)
		gdri_nic_undo(net);
	return ret;
}

void gdri_nic_forget_new(struct gdri_nic *nic)
{
	for (int i = nic->n_parts; i-- > 0;) {
		if (nic->parts[i].is_new)
			part_destroy(nic, i);
		else
			nic->parts[i].leaves = false;
	}
}

/* The keys first, then what they hold. */
void gdri_nic_undo(struct gdri_net *net)
{
	struct gdri_nic *nic = gdri_nic_of(net);

	gdri_nic_joint_destroy(nic);
	gdri_nic_forget_new(nic);
}

static void unlink_joint(struct gdri_nic_joint **at)
{
	struct gdri_nic_joint *j = *at;

	*at = j->next;
	for (int i = 0; i < 2; i++) {
		if (j->mkey[i])
			mlx5dv_devx_obj_destroy(j->mkey[i]);
	}
	free(j);
}

void gdri_nic_joint_destroy(struct gdri_nic *nic)
{
	unlink_joint(&nic->joints);
}

void gdri_nic_drop_keys(struct gdri_net *net, int kept)
{
	struct gdri_nic_joint **at = &gdri_nic_of(net)->joints;

	while (*at && kept--)
		at = &(*at)->next;
	while (*at)
		unlink_joint(at);
}

int gdri_nic_leave(struct gdri_net *net, uint64_t offset, size_t len, struct gdri_mr_keys *keys)
{
	struct gdri_nic *nic = gdri_nic_of(net);
	struct gdri_nic_joint *before = nic->joints;
	int ret;

	for (int i = 0; i < nic->n_parts; i++) {
		nic->parts[i].is_new = false;
		nic->parts[i].leaves = nic->parts[i].offset - offset < len;
	}
	ret = nic_join_keys(nic, keys);
	if (ret && nic->joints == before)
		gdri_nic_forget_new(nic);
	else if (ret)
		gdri_nic_undo(net);
	return ret;
}

void gdri_nic_drop_left(struct gdri_net *net)
{
	struct gdri_nic *nic = gdri_nic_of(net);

	for (int i = nic->n_parts; i-- > 0;) {
		if (nic->parts[i].leaves)
			part_destroy(nic, i);
	}
}

void gdri_nic_grow_destroy(struct gdri_nic *nic)
{
	while (nic->joints)
		gdri_nic_joint_destroy(nic);
	while (nic->n_parts)
		part_destroy(nic, nic->n_parts - 1);
	if (nic->hole)
		ibv_dereg_mr(nic->hole);
	nic->hole = NULL;
	free(nic->hole_page);
	nic->hole_page = NULL;
}
