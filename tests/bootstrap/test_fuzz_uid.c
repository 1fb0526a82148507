/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fuzz_uid [INPUTS [SEED]]: random inputs from a fixed seed for both ends of a job by unique id.
 * Fails by a crash, a sanitizer's report, an input that does not end, or when inputs reach nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bootstrap/uniqueid/wire.h"
#include "fuzz_uid.h"
#include "runtime/core/log.h"

enum { MAX_INPUT = 3000, HANG_S = 20 };

static uint64_t rng;

static uint32_t rnd(void)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33);
}

int main(int argc, char **argv)
{
	unsigned long inputs = argc > 1 ? strtoul(argv[1], NULL, 10) : 3000, i;
	static uint8_t data[MAX_INPUT];
	const struct fuzz_uid_stats *s = &fuzz_uid_stats;

	rng = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	gdri_log_set_level(GDRI_LOG_ERROR); /* there is a warning for each PE that is lost */
	for (i = 0; i < inputs; i++) {
		size_t n = rnd() % MAX_INPUT;

		for (size_t k = 0; k < n; k++)
			data[k] = (uint8_t)rnd();
		alarm(HANG_S);
		fuzz_uid(data, n);
	}
	printf("%lu inputs: %llu welcomes, %llu results, %llu jobs done, %llu aborts, %llu frames taken\n",
	       inputs, (unsigned long long)s->welcomes, (unsigned long long)s->results,
	       (unsigned long long)s->done, (unsigned long long)s->aborts, (unsigned long long)s->taken);
	return s->welcomes && s->results && s->done && s->aborts && s->taken ? 0 : 1;
}
