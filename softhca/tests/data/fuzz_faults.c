/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/faults/faults_plan.h"
#include "softhca/transport/rc.h"

enum { QPS = 3, STEPS = 12 };

#define T0 1000000000ull
#define DELAY_MAX 2000000000000000ull /* the language's longest time, twice */

static void broken(const char *text, const char *what)
{
	fprintf(stderr, "\"%s\": %s\n", text, what);
	abort();
}

static void check_refusal(const char *text, const char *err)
{
	const char *at = strstr(err, " at character ");

	if (strncmp(err, "SOFTHCA_FAULTS: ", 16) || !at)
		broken(text, err[0] ? err : "refused without a word");
	if (strtoull(at + 14, NULL, 10) > strlen(text) + 1)
		broken(text, "refused at a place behind its end");
}

static void ask(const char *text, struct hca_qp *qp, uint64_t now)
{
	uint8_t syndrome = 0, vendor;
	struct fault_fate fate;

	faults_tx(qp, now, &fate);
	if (fate.until && fate.until - now > DELAY_MAX)
		broken(text, "a packet is held for ever");
	faults_rx_drop(qp, now);
	faults_doorbell_late(qp, now, (uint16_t)now);
	if (faults_may_pick(qp, now) && faults_wqe(qp, now, 4, 1 << 30, &syndrome, &vendor) && !syndrome)
		broken(text, "an error without a syndrome");
	faults_may_complete(qp, now);
	faults_first(FAULT_FIRST_PSN, 1);
	for (unsigned i = 0; i < FAULT_OBJECTS; i++)
		faults_refuse((enum fault_object)i);
	faults_timer(now);
}

static void use(const char *text)
{
	static const uint64_t step[] = {0, 1, 1000, 1000000, 3000000000ull};
	struct hca_qp qps[QPS];
	uint64_t now = T0;

	memset(qps, 0, sizeof(qps));
	for (unsigned i = 0; i < QPS; i++) {
		qps[i].qpn = dp_first_qpn() + i;
		faults_qp_ready(&qps[i]);
	}
	for (unsigned i = 0; i < STEPS; i++) {
		ask(text, &qps[i % QPS], now);
		now += step[i % 5];
	}
}

int fuzz_faults(const uint8_t *data, size_t n)
{
	char *text = strndup((const char *)data, n), err[200];
	uint32_t rank = 2;
	int refused;

	if (!text)
		return 0;
	refused = faults_start_with(text, &rank, T0, err, sizeof(err));
	if (refused)
		check_refusal(text, err);
	else if (faults_on)
		use(text);
	/* Each rank keeps clauses of its own, so only their number may differ. */
	if (!strstr(err, "64 clauses") && (faults_check(text, err, sizeof(err)) != 0) != (refused != 0) &&
	    !strstr(err, "64 clauses"))
		broken(text, "refused by some ranks only");
	free(text);
	return !refused;
}
