/* SPDX-License-Identifier: BSD-3-Clause */
/* CREATE_MKEY: indirect keys (mkey.c): those that work requests fill, as libmlx5 makes them, and those whose pieces
 * stand behind the mailbox, as drivers make them that join regions. Regions are made by the verbs alone. */
#include <stdlib.h>

#include "softhca/engine/dp.h"
#include "softhca/firmware/prm.h"
#include "softhca/strict/strict.h"
#include "softhca/tools/options.h"
#include "softhca/transport/wqe.h"

enum { MODE_KLMS = 2, MODE_KLMS_FIXED = 3 /* each of one length, whatever the entry says */ };

static uint64_t get_64(const uint8_t *p)
{
	return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

static uint32_t access_of(const uint8_t *mkc)
{
	return (prm_get(mkc, MKC_LW) ? HCA_LOCAL_WRITE : 0u) |
	       (prm_get(mkc, MKC_RW) ? HCA_REMOTE_WRITE : 0u) |
	       (prm_get(mkc, MKC_RR) ? HCA_REMOTE_READ : 0u) |
	       (prm_get(mkc, MKC_ATOMIC) ? HCA_REMOTE_ATOMIC : 0u) |
	       (prm_get(mkc, MKC_RELAXED_WRITE) ? HCA_RELAXED_ORDERING : 0u);
}

/* The length of entry i; of those of one length the ones behind the key's own end are none. */
static uint32_t entry_len(const uint8_t *mkc, const uint8_t *entry, uint32_t i)
{
	uint32_t log = prm_get(mkc, MKC_LOG_ENTITY);

	if (prm_get(mkc, MKC_ACCESS_MODE) != MODE_KLMS_FIXED)
		return get_be32(entry);
	return (uint64_t)i << log < get_64(mkc + 0x18) ? 1u << log : 0;
}

/* The keys that an indirect one holds. A device that has relaxed order alone has its atomics there. */
static int mkey_children(struct prm_cmd *cmd, const uint8_t *mkc, const uint8_t *p, uint32_t n)
{
	bool atomic = prm_get(mkc, MKC_ATOMIC) && !hca_options()->device.relaxed_only;

	for (uint32_t i = 0; i < n; i++, p += 16) {
		const struct hca_mr *child = hca_find_mr(get_be32(p + 4));

		if (!entry_len(mkc, p, i))
			continue;
		if (!child || child->pdn != prm_get(mkc, MKC_PD)) {
			strict_command(RULE_MKEY_CHILD, "CREATE_MKEY: key 0x%08x", get_be32(p + 4));
			return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_CHILD);
		}
		if (atomic && child->access & HCA_RELAXED_ORDERING) {
			strict_command(RULE_MKEY_ATOMIC, "CREATE_MKEY: key 0x%08x", child->key);
			return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_ATOMIC);
		}
	}
	return 0;
}

/* n entries {length, key, address} behind the mailbox; those without length are none. */
static const char *fill_now(struct prm_cmd *cmd, const uint8_t *mkc, struct hca_mr *m, uint32_t n)
{
	struct wqe_umr u = {
		.new_free = true, .new_key = true, .new_access = true, .new_start = true, .new_len = true,
		.access = access_of(mkc),
		.variant = (uint8_t)prm_get(mkc, MKC_VARIANT),
		.start = get_64(mkc + 0x10), .len = get_64(mkc + 0x18),
	};
	const uint8_t *p = cmd->in + CREATE_MKEY_IN_LEN;
	struct wqe_sge *sge = calloc(n, sizeof(*sge));
	const char *fault;
	uint32_t i, used = 0;

	if (!sge)
		return "out of memory";
	for (i = 0; i < n; i++, p += 16) {
		uint32_t len = entry_len(mkc, p, i);

		if (len)
			sge[used++] = (struct wqe_sge){.len = len, .lkey = get_be32(p + 4), .addr = get_64(p + 8)};
	}
	fault = mkey_update(m, &u, sge, used);
	free(sge);
	return fault;
}

static int mkey_fill(struct prm_cmd *cmd, const uint8_t *mkc, struct ctl_mr *c)
{
	struct ctl_pd *pd = pd_find(cmd->ctx, prm_get(mkc, MKC_PD));
	uint32_t n = prm_get(cmd->in, CREATE_MKEY_ACTUAL);
	uint32_t mode = prm_get(mkc, MKC_ACCESS_MODE);
	bool later = prm_get(mkc, MKC_FREE);
	int rc;

	if (!pd)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_PD);
	/* Filled later: free, and open to UMR, whose entries have lengths. */
	if (mode != MODE_KLMS && (mode != MODE_KLMS_FIXED || later))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_MODE);
	if (prm_get(mkc, MKC_ACCESS_MODE_HI) ||
	    prm_get(mkc, MKC_BSF_EN) || (later ? !prm_get(mkc, MKC_UMR_EN) : !n))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_MODE);
	if (!prm_get(mkc, MKC_OCTOWORDS) || prm_get(mkc, MKC_OCTOWORDS) > 1u << hca_options()->device.klm_list ||
	    (!later && n > prm_get(mkc, MKC_OCTOWORDS)))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_LOG_SIZE);
	if (!later && cmd->in_len < CREATE_MKEY_IN_LEN + 16 * (size_t)n)
		return prm_fail(cmd, PRM_BAD_INPUT_LEN, SYN_LENGTH);
	if (hca_options()->device.relaxed_only && !prm_get(mkc, MKC_RELAXED_WRITE))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_ORDER);
	c->mr.pdn = pd->pd.pdn;
	c->mr.window = HCA_INDIRECT;
	c->mr.max_pieces = prm_get(mkc, MKC_OCTOWORDS);
	c->mr.remote_inv = prm_get(mkc, MKC_EN_RINVAL);
	c->mr.access = access_of(mkc); /* these until a UMR says otherwise */
	c->mr.iova = get_64(mkc + 0x10);
	c->mr.len = get_64(mkc + 0x18);
	if (prm_get(mkc, MKC_ATOMIC) && !hca_options()->device.indirect_atomic)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_ATOMIC);
	rc = later ? 0 : mkey_children(cmd, mkc, cmd->in + CREATE_MKEY_IN_LEN, n);
	if (rc)
		return rc;
	if (!later && fill_now(cmd, mkc, &c->mr, n))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_MODE);
	if (mr_number(c)) {
		mkey_gone(&c->mr);
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	}
	c->mr.key = (c->mr.key & ~0xffu) | prm_get(mkc, MKC_VARIANT);
	c->pd = pd;
	pd->obj.refs++;
	return 0;
}

int prm_create_mkey(struct prm_cmd *cmd)
{
	struct ctl_mr *c = obj_new(cmd->ctx, OBJ_MW, sizeof(*c));
	int rc;

	if (!c)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	c->obj.devx = true;
	rc = mkey_fill(cmd, cmd->in + CREATE_MKEY_MKC, c);
	if (rc) {
		obj_free(&c->obj);
		return rc;
	}
	prm_set(cmd->out, CMD_OBJ_NUM, c->mr.key >> 8);
	cmd->obj = &c->obj;
	return 0;
}
