/* SPDX-License-Identifier: BSD-3-Clause */
/* What a poster that has the publish turn stores towards the NIC, in which order, and the fences between: by a record,
 * by a doorbell in front of it too, without one, with a thread of the host that rings. publish.h is compiled over
 * primitives that note their name. F1 to R1: docs/memory-model-internals.md, Posting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <gdr/impl/queue/reserve.h>
#include <gdr/impl/wait/waiter.h>

static char noted[128];

static void note(const char *name)
{
	if (*noted)
		strcat(noted, " ");
	strncat(noted, name, sizeof(noted) - strlen(noted) - 2);
}

/* All that publish.h uses, so that none stays without a note. */
#define gdri_fence_nic()	 note("nic")
#define gdri_fence_sys()	 note("sys")
#define gdri_fence_gpu()	 note("gpu")
#define gdri_fence_acquire_sys() note("acquire_sys")
#define gdri_fence_release_nic() note("release_nic")
#define gdri_fence_release_sys() note("release_sys")
#define gdri_fence_release_gpu() note("release_gpu")
#define gdri_st_mmio_u64(p, v)	 (note("doorbell"), (void)(*(p) = (v)))
#define gdri_st_fenced_u32(p, v) (note("record"), (void)(*(p) = (v)))
#define gdri_st_fenced_u64(p, v) (note("ready"), (void)(*(p) = (v)))
#define gdri_red_and_u64(p, v)	 (note("marks"), (void)(*(p) &= (v)))

#include <gdr/impl/queue/publish.h>

#define QPN 0x123456u
#define BASE 0xfffeull /* the index passes 2^16 */

static const struct way {
	uint32_t flags;
	int record;
	const char *order;
} ways[] = {
	/* F1, F2 */
	{0, 1, "nic record release_nic doorbell ready"},
	/* F1, F2: the second doorbell alone is behind the record for certain */
	{GDRI_DEV_EARLY, 1, "nic doorbell record release_nic doorbell ready"},
	/* F1, F6 */
	{GDRI_DEV_NO_RECORD, 0, "nic doorbell release_sys ready"},
	/* a queue pair that has one beside others without */
	{GDRI_DEV_NO_RECORD, 1, "nic record release_nic doorbell ready"},
	/* F1, F2, F5: the doorbell is a word of memory */
	{GDRI_DEV_HOST_RINGS, 1, "nic record release_nic doorbell gpu ready"},
	{GDRI_DEV_HOST_RINGS | GDRI_DEV_NO_RECORD, 0, "nic doorbell gpu ready"},
};

static struct gdri_dev dev;
static struct gdri_qp qp;
static uint64_t db;
static uint32_t dbrec;

static void begin(const struct way *way, uint64_t behind)
{
	memset(&dev, 0, sizeof(dev));
	memset(&qp, 0, sizeof(qp));
	dev.flags = way->flags;
	qp.db = &db;
	qp.dbrec = way->record ? &dbrec : NULL;
	qp.qpn_shifted = __builtin_bswap32(QPN << 8);
	qp.ready = BASE << 1;
	qp.rsvd = BASE + 4 + behind;
	*noted = '\0';
	db = dbrec = 0;
}

/* What the NIC finds: the index behind block 4, in the record and in the first word of the doorbell. */
static void rang(const struct way *way, const char *order)
{
	uint32_t word[2];

	memcpy(word, &db, sizeof(word));
	assert_string_equal(noted, order);
	assert_int_equal(word[0], __builtin_bswap32(0x0002u << 8));
	assert_int_equal(word[1], __builtin_bswap32(QPN << 8));
	assert_int_equal(dbrec, way->record ? __builtin_bswap32(0x0002u) : 0);
	assert_int_equal(qp.ready, (BASE + 4) << 1);
}

static void test_ways(void **state)
{
	char order[128];

	(void)state;
	for (const struct way *w = ways; w != ways + sizeof(ways) / sizeof(*ways); w++) {
		begin(w, 0);
		assert_int_equal(gdri_sq_publish(&dev, &qp, BASE, 4, 0), 0);
		rang(w, w->order);
		/* who knows that the turn is its own has made F1 while the queue's constants arrive */
		begin(w, 0);
		gdri_sq_publish_first(&dev, &qp, BASE, 4, 0);
		rang(w, w->order);
		/* who has the turn of others' marks, too: they are cleared in front of F1 */
		begin(w, 0);
		qp.marks = gdri_marks_of(BASE + 1, 3);
		gdri_sq_hand_on(&dev, &qp, BASE, 1, 0);
		strcpy(order, "marks ");
		rang(w, strcat(order, w->order));
		assert_int_equal(qp.marks, 0);
	}
}

/* Who has others behind rings for none, and hands on what the NIC need not see yet: a fence of the GPU. */
static void test_no_doorbell(void **state)
{
	(void)state;
	for (const struct way *w = ways; w != ways + sizeof(ways) / sizeof(*ways); w++) {
		begin(w, 1);
		qp.ready = 4 << 1;
		qp.rsvd = 10;
		assert_int_equal(gdri_sq_publish(&dev, &qp, 4, 4, 1), 0);
		assert_string_equal(noted, "gpu ready");
		assert_int_equal(qp.ready, 8 << 1 | 1);
		assert_int_equal(db, 0);
		assert_int_equal(dbrec, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_no_doorbell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
