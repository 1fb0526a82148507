// SPDX-License-Identifier: BSD-3-Clause
/* Keys of other PEs' parts that are mapped here (FI_MR_RAW), when lists of parts come: each is unmapped once, and none
 * that RMA under way may use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/ofi/ofi.h"

#define PARTS (GDRI_OFI_PARTS / 2u) /* most of one list */
#define LISTS 5u

static const struct gdri_ofi_fabric fabric = {.mr_raw = true};
static struct gdri_ofi_part list[PARTS];
static int mapped[1 + LISTS * PARTS]; /* times, by key */
static uint64_t last_key;
static bool refuses;

int gdri_ofi_key_map(const struct gdri_ofi_fabric *f, uint64_t addr, uint8_t raw[GDRI_OFI_RAW], uint64_t *key)
{
	(void)f;
	(void)addr;
	(void)raw;
	if (refuses)
		return -1;
	*key = ++last_key;
	mapped[*key]++;
	return 0;
}

void gdri_ofi_key_unmap(const struct gdri_ofi_fabric *f, uint64_t key)
{
	(void)f;
	mapped[key]--;
}

static unsigned count_mapped(void)
{
	unsigned n = 0;

	for (uint64_t key = 1; key <= last_key; key++) {
		assert_in_range(mapped[key], 0, 1);
		n += (unsigned)mapped[key];
	}
	return n;
}

static struct gdri_ofi_peer *begin(void)
{
	memset(mapped, 0, sizeof(mapped));
	last_key = 0;
	refuses = false;
	return calloc(1, sizeof(struct gdri_ofi_peer));
}

static void end(struct gdri_ofi_peer *p)
{
	p->n_moves = 0;
	gdri_ofi_parts_take(&fabric, p, p->parts, 0);
	assert_int_equal(count_mapped(), 0);
	free(p->gone);
	free(p);
}

/* As another PE tells them. */
static void take(struct gdri_ofi_peer *p, uint64_t addr, uint32_t n)
{
	memset(list, 0, sizeof(list));
	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct gdri_ofi_part){.addr = addr + i, .key = GDRI_OFI_RAW};
	gdri_ofi_parts_take(&fabric, p, list, n);
}

/* A part of the new list that was in the old one keeps its key, and may be reached by it. */
static void goes_on(void **state)
{
	struct gdri_ofi_peer *p = begin();

	(void)state;
	take(p, 100, 4);
	take(p, 102, 4); /* two of them */
	assert_int_equal(last_key, 6);
	assert_int_equal(count_mapped(), 4);
	assert_int_equal(p->parts[0].key, 3);
	assert_int_equal(p->parts[1].key, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(p->parts[i].no_rma, 0);
	refuses = true;
	take(p, 104, 4);
	assert_int_equal(count_mapped(), 2);
	assert_int_equal(p->parts[1].no_rma, 0);
	assert_int_equal(p->parts[2].no_rma, 1);
	end(p);
}

/* As many lists as come while RMA is under way. */
static void all_stay(void **state)
{
	struct gdri_ofi_peer *p = begin();

	(void)state;
	p->n_moves = 1;
	for (uint64_t i = 0; i < LISTS; i++)
		take(p, (i + 1) * 1000, PARTS);
	assert_int_equal(count_mapped(), LISTS * PARTS);
	p->n_moves = 0;
	take(p, LISTS * 1000, PARTS);
	assert_int_equal(count_mapped(), PARTS);
	end(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on),
		cmocka_unit_test(all_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
