// SPDX-License-Identifier: BSD-3-Clause
/* What gdr_info --check makes of bytes that no machine here has: configuration spaces, answers of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "tools/check/acs.h"
#include "tools/check/dcb.h"

/* A bridge with an extended capability at 0x100 and ACS at 0x148. */
static void acs_bridge(uint8_t config[4096], uint8_t control)
{
	memset(config, 0, 4096);
	memcpy(config + 0x100, "\x01\x00\x82\x14", 4);
	memcpy(config + 0x148, "\x0d\x00\x01\x00", 4);
	config[0x148 + 6] = control;
}

static void acs_reads_the_control_register(void **state)
{
	uint8_t config[4096];

	(void)state;
	acs_bridge(config, 0x1d);
	assert_int_equal(acs_of(config, sizeof(config)), ACS_REDIRECTS);
	acs_bridge(config, 0x04);
	assert_int_equal(acs_of(config, sizeof(config)), ACS_REDIRECTS);
	acs_bridge(
		config,
		0x13); /* validation, translation blocking, upstream forwarding: no redirection */
	assert_int_equal(acs_of(config, sizeof(config)), ACS_OFF);
	config[0x148] = 0x0e;
	assert_int_equal(acs_of(config, sizeof(config)), ACS_NONE);
	memcpy(config + 0x148, "\x01\x00\x02\x10", 4); /* leads back: the search ends */
	assert_int_equal(acs_of(config, sizeof(config)), ACS_NONE);
	acs_bridge(config, 0x1d);
	assert_int_equal(acs_of(config, 64), ACS_UNSEEN);
	assert_int_equal(acs_of(config, 0), ACS_UNSEEN);
	assert_int_equal(acs_of(config, 0x14b), ACS_NONE); /* cut off within it */
}

struct dcb_answer {
	uint8_t at[1024];
	size_t n;
};

/* Where an attribute begins, for dcb_close. */
static size_t dcb_put(struct dcb_answer *a, unsigned type, const void *data, size_t n)
{
	struct nlattr attr = {.nla_type = (uint16_t)type, .nla_len = (uint16_t)(NLA_HDRLEN + n)};
	size_t at = a->n;

	memcpy(a->at + at, &attr, sizeof(attr));
	if (n)
		memcpy(a->at + at + NLA_HDRLEN, data, n);
	a->n += NLA_ALIGN(NLA_HDRLEN + n);
	return at;
}

static void dcb_close(struct dcb_answer *a, size_t at)
{
	uint16_t n = (uint16_t)(a->n - at);

	memcpy(a->at + at, &n, sizeof(n));
}

static void dcb_answer(struct dcb_answer *a)
{
	struct ieee_pfc pfc = {.pfc_cap = 8, .pfc_en = 1 << 3};
	struct dcb_app dscp = {
		.selector = IEEE_8021QAZ_APP_SEL_DSCP, .protocol = 26, .priority = 3};
	struct dcb_app ether = {
		.selector = IEEE_8021QAZ_APP_SEL_ETHERTYPE, .protocol = 5, .priority = 6};
	struct nlmsghdr h = {.nlmsg_type = RTM_GETDCB};
	size_t ieee, apps;

	memset(a, 0, sizeof(*a));
	a->n = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct dcbmsg));
	dcb_put(a, DCB_ATTR_IFNAME, "eth7", 5);
	ieee = dcb_put(a, DCB_ATTR_IEEE | NLA_F_NESTED, NULL, 0);
	dcb_put(a, DCB_ATTR_IEEE_PFC, &pfc, sizeof(pfc));
	apps = dcb_put(a, DCB_ATTR_IEEE_APP_TABLE, NULL, 0);
	dcb_put(a, DCB_ATTR_IEEE_APP, &dscp, sizeof(dscp));
	dcb_put(a, DCB_ATTR_IEEE_APP, &ether, sizeof(ether));
	dcb_close(a, apps);
	dcb_close(a, ieee);
	h.nlmsg_len = (uint32_t)a->n;
	memcpy(a->at, &h, sizeof(h));
}

static void dcb_reads_priorities(void **state)
{
	struct dcb_answer a;
	struct dcb out;

	(void)state;
	dcb_answer(&a);
	assert_true(dcb_parse(a.at, a.n, &out));
	assert_true(out.has_pfc);
	assert_int_equal(out.pfc, 8);
	assert_int_equal(out.n_dscp, 1);
	assert_int_equal(out.prio[26], 3);
	assert_int_equal(out.prio[5], -1);
}

/* Cut off anywhere, or with any byte changed: no access outside (the sanitizers' word), no number out of range. */
static void dcb_survives_damage(void **state)
{
	struct dcb_answer whole, a;
	struct dcb out;

	(void)state;
	dcb_answer(&whole);
	for (size_t n = 0; n < whole.n; n++)
		assert_false(dcb_parse(whole.at, n, &out)); /* shorter than it says */
	for (size_t i = 0; i < whole.n; i++) {
		a = whole;
		a.at[i] ^= 0xff;
		dcb_parse(a.at, a.n, &out);
		for (int d = 0; d < 64; d++)
			assert_in_range(out.prio[d] + 1, 0, 8);
	}
	assert_false(dcb_ask("no-such-if", &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acs_reads_the_control_register),
		cmocka_unit_test(dcb_reads_priorities),
		cmocka_unit_test(dcb_survives_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
