// SPDX-License-Identifier: BSD-3-Clause
/* A heap of several memory regions: an indirect key (PRM, "Memory Key", access mode KLM) over all of them, whose
 * addresses are offsets in the heap as those of the regions are. An access may lie in two of them. */
#include "runtime/nic_impl.h"

#include <stdlib.h>

#include <gdr/status.h>

#include "runtime/log.h"
#include "runtime/prm.h"

#define PIECE ((uint64_t)1 << 30) /* a length has 32 bits, and 0 has a meaning of its own */

static uint32_t pieces_of(const struct ibv_mr *mr)
{
	return (uint32_t)((mr->length + PIECE - 1) / PIECE);
}

static uint8_t *put_pieces(uint8_t *at, const struct ibv_mr *mr, uint64_t iova)
{
	uint64_t done, len;

	for (done = 0; done < mr->length; done += len, at += PRM_KLM_BYTES) {
		len = mr->length - done < PIECE ? mr->length - done : PIECE;
		gdri_prm_set(at, PRM_KLM_COUNT, len);
		gdri_prm_set(at, PRM_KLM_KEY, mr->lkey);
		gdri_prm_set(at, PRM_KLM_ADDRESS, iova + done);
	}
	return at;
}

static void fill(const struct gdri_nic *nic, uint8_t *in, uint32_t n, uint64_t len)
{
	void *mkc = gdri_prm_at(in, PRM_CREATE_MKEY_MKC);
	uint8_t *at = in + PRM_CREATE_MKEY_IN_BYTES;
	uint64_t iova = nic->heap_first->length;
	int i;

	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_CREATE_MKEY);
	gdri_prm_set(in, PRM_CREATE_MKEY_ACTUAL, n);
	gdri_prm_set(mkc, PRM_MKC_MODE, PRM_MKC_KLM);
	gdri_prm_set(mkc, PRM_MKC_A, 1);
	gdri_prm_set(mkc, PRM_MKC_RW, 1);
	gdri_prm_set(mkc, PRM_MKC_RR, 1);
	gdri_prm_set(mkc, PRM_MKC_LW, 1);
	gdri_prm_set(mkc, PRM_MKC_LR, 1);
	gdri_prm_set(mkc, PRM_MKC_QPN, 0xffffff); /* of no queue in particular */
	gdri_prm_set(mkc, PRM_MKC_PD, nic->pdn);
	gdri_prm_set(mkc, PRM_MKC_LEN, len);
	gdri_prm_set(mkc, PRM_MKC_OCTOWORDS, n);
	at = put_pieces(at, nic->heap_first, 0);
	for (i = 0; i < nic->n_parts; i++) {
		at = put_pieces(at, nic->parts[i].mr, iova);
		iova += nic->parts[i].mr->length;
	}
}

/* Over all that is registered. */
static int join(struct gdri_nic *nic, struct mlx5dv_devx_obj **mkey, uint32_t *key)
{
	uint8_t out[PRM_CREATE_MKEY_OUT_BYTES], *in;
	uint64_t len = nic->heap_first->length;
	uint32_t n = pieces_of(nic->heap_first);
	size_t bytes;
	int i, ret;

	for (i = 0; i < nic->n_parts; i++) {
		n += pieces_of(nic->parts[i].mr);
		len += nic->parts[i].mr->length;
	}
	n = (n + 3) & ~3u; /* entries without length fill the last 64 bytes */
	bytes = PRM_CREATE_MKEY_IN_BYTES + (size_t)n * PRM_KLM_BYTES;
	in = calloc(1, bytes);
	if (!in) {
		gdri_error("out of memory");
		return -GDR_ENOMEM;
	}
	fill(nic, in, n, len);
	ret = gdri_nic_obj_create(nic, "CREATE_MKEY (a heap of several parts)", in, bytes, out, sizeof(out), mkey);
	*key = (uint32_t)gdri_prm_get(out, PRM_CREATE_MKEY_OUT_INDEX) << 8;
	free(in);
	return ret;
}

static int register_all(struct gdri_nic *nic, uint8_t *addr, size_t len, uint64_t offset)
{
	size_t slice;
	int ret;

	for (; len; len -= slice, addr += slice, offset += slice) {
		struct gdri_nic_part *p = &nic->parts[nic->n_parts];

		if (nic->n_parts == GDRI_NIC_PARTS) {
			gdri_error("%s: more than %d memory regions of a heap", nic->name, GDRI_NIC_PARTS);
			return -GDR_ENOMEM;
		}
		slice = gdri_nic_mr_slice(nic, len);
		*p = (struct gdri_nic_part){gdri_nic_mr_heap(nic, addr, slice, offset, &ret), NULL};
		if (!p->mr)
			return ret;
		nic->n_parts++;
	}
	return 0;
}

int gdri_nic_grow_heap(struct gdri_nic *nic, void *addr, size_t len, uint64_t offset, struct gdri_mr_keys *keys)
{
	int before = nic->n_parts, ret = register_all(nic, addr, len, offset);
	uint32_t key = 0;

	if (!ret)
		ret = join(nic, &nic->parts[nic->n_parts - 1].mkey, &key);
	if (!ret)
		*keys = (struct gdri_mr_keys){key, key, key};
	else if (nic->n_parts > before)
		gdri_nic_shrink_heap(nic);
	return ret;
}

/* The key first, then what it holds, up to what an earlier key ends with. */
void gdri_nic_shrink_heap(struct gdri_nic *nic)
{
	struct gdri_nic_part *p;

	do {
		p = &nic->parts[--nic->n_parts];
		if (p->mkey)
			mlx5dv_devx_obj_destroy(p->mkey);
		ibv_dereg_mr(p->mr);
	} while (nic->n_parts && !nic->parts[nic->n_parts - 1].mkey);
}
