/* SPDX-License-Identifier: BSD-3-Clause */
/* Which GID and P_Key index a port uses: pure functions over the port's
 * tables. */
#ifndef GDRI_NIC_GID_H
#define GDRI_NIC_GID_H

#include <stddef.h>
#include <stdint.h>

enum gdri_gid_type { GDRI_GID_IB, GDRI_GID_ROCE_V1, GDRI_GID_ROCE_V2 };

struct gdri_gid {
	int index;
	enum gdri_gid_type type;
	uint8_t raw[16];
};

/* Chooses the GID of a RoCE port: position in gids[], or -GDR_EOPTION when `wanted` (>= 0: the
 * GID index that the user asks for) cannot be used, -GDR_ENODEV when no GID can. `why` says
 * the reason in words, either way. */
int gdri_gid_choose(const struct gdri_gid *gids, int n, int wanted, char *why, size_t room);

/* Index of `pkey` in the table: the same membership bit if possible, else the same
 * partition. -GDR_EOPTION if it is in neither form, with `why`. */
int gdri_pkey_index(const uint16_t *table, int n, uint16_t pkey, char *why, size_t room);

/* "::ffff:10.0.0.1"; room >= 46 */
void gdri_gid_text(const uint8_t raw[16], char *buf, size_t room);

#endif
