// SPDX-License-Identifier: BSD-3-Clause
/* The parts of other PEs' heaps, and where the provider wants that (FI_MR_RAW) their keys, mapped for use here. */
#include "runtime/ofi/ofi.h"

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

/* The key that the part has had; else one more is mapped. Where that fails the part is reached by requests alone. */
static void parts_map(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, struct gdri_ofi_part *part)
{
	uint32_t i;

	for (i = 0; i < p->n_parts; i++) {
		if (p->parts[i].no_rma || !parts_equal(&p->parts[i], part))
			continue;
		part->key = p->parts[i].key;
		p->parts[i].no_rma = 1; /* it has no key to unmap */
		return;
	}
	part->no_rma |= gdri_ofi_key_map(f, part->addr, part->raw, &part->key) != 0;
}

/* What is left of these is of no part any more. */
static void parts_unmap(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p)
{
	uint32_t i;

	for (i = 0; i < p->n_parts; i++) {
		if (p->parts[i].no_rma)
			continue;
		if (p->n_gone == GDRI_OFI_PARTS)
			gdri_ofi_key_unmap(f, p->gone[--p->n_gone]);
		p->gone[p->n_gone++] = p->parts[i].key;
	}
	while (p->n_gone && !p->n_moves)
		gdri_ofi_key_unmap(f, p->gone[--p->n_gone]);
}

void gdri_ofi_parts_take(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, const struct gdri_ofi_part *parts,
			 uint32_t n)
{
	struct gdri_ofi_part now[GDRI_OFI_PARTS];
	uint32_t i;

	memcpy(now, parts, n * sizeof(*now));
	for (i = 0; f->mr_raw && i < n; i++)
		if (!now[i].no_rma)
			parts_map(f, p, &now[i]);
	if (f->mr_raw)
		parts_unmap(f, p);
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
