// SPDX-License-Identifier: BSD-3-Clause
/* The parts of other PEs' heaps, and where the provider wants that (FI_MR_RAW) their keys, mapped for use here. */
#include "runtime/ofi/ofi.h"

#include <stdlib.h>
#include <string.h>

void gdri_ofi_parts_tell(const struct gdri_ofi_fabric *f, const struct gdri_ofi_part *parts, uint32_t n, uint8_t *list)
{
	uint32_t i, len = gdri_ofi_part_bytes(f);

	for (i = 0; i < n; i++)
		memcpy(list + (size_t)i * len, &parts[i], len);
}

static bool parts_equal(const struct gdri_ofi_part *a, const struct gdri_ofi_part *b)
{
	return a->addr == b->addr && !memcmp(a->raw, b->raw, sizeof(a->raw));
}

/* The key that the part has had, and then goes_on of the old part; else one more is mapped. Where that fails the part
 * is reached by requests alone. */
static void parts_map(const struct gdri_ofi_fabric *f, const struct gdri_ofi_peer *p, struct gdri_ofi_part *part,
		      bool *goes_on)
{
	uint32_t i;

	for (i = 0; i < p->n_parts; i++) {
		if (p->parts[i].no_rma || goes_on[i] || !parts_equal(&p->parts[i], part))
			continue;
		part->key = p->parts[i].key;
		goes_on[i] = true;
		return;
	}
	part->no_rma |= gdri_ofi_key_map(f, part->addr, part->raw, &part->key) != 0;
}

static bool parts_have_room(struct gdri_ofi_peer *p)
{
	uint32_t room = p->gone_room ? 2 * p->gone_room : GDRI_OFI_PARTS;
	uint64_t *more;

	if (p->n_gone < p->gone_room)
		return true;
	more = realloc(p->gone, room * sizeof(*more));
	if (!more)
		return false;
	p->gone = more;
	p->gone_room = room;
	return true;
}

/* A key waits for the end of RMA. Without memory to keep it it leaves now, and RMA by it fails. */
static void parts_leave(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, uint64_t key)
{
	if (p->n_moves && parts_have_room(p))
		p->gone[p->n_gone++] = key;
	else
		gdri_ofi_key_unmap(f, key);
}

static void parts_unmap(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, const bool *goes_on)
{
	uint32_t i;

	for (i = 0; i < p->n_parts; i++) {
		if (!p->parts[i].no_rma && !goes_on[i])
			parts_leave(f, p, p->parts[i].key);
	}
	while (p->n_gone && !p->n_moves)
		gdri_ofi_key_unmap(f, p->gone[--p->n_gone]);
}

void gdri_ofi_parts_take(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, const struct gdri_ofi_part *parts,
			 uint32_t n)
{
	struct gdri_ofi_part now[GDRI_OFI_PARTS];
	bool goes_on[GDRI_OFI_PARTS] = {0}; /* the key of the old part */
	uint32_t i;

	memcpy(now, parts, n * sizeof(*now));
	for (i = 0; f->mr_raw && i < n; i++)
		if (!now[i].no_rma)
			parts_map(f, p, &now[i], goes_on);
	if (f->mr_raw)
		parts_unmap(f, p, goes_on);
	memcpy(p->parts, now, n * sizeof(*now));
	p->n_parts = n;
}

void gdri_ofi_parts_take_list(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, const uint8_t *list,
			      uint32_t n)
{
	struct gdri_ofi_part parts[GDRI_OFI_PARTS] = {0};
	uint32_t i, len = gdri_ofi_part_bytes(f);

	for (i = 0; i < n; i++)
		memcpy(&parts[i], list + (size_t)i * len, len);
	gdri_ofi_parts_take(f, p, parts, n);
}
