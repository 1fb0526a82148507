/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fuzz_prm INPUTS SEED [FILE...]: the files of the corpus, then so many inputs from
 * a fixed seed, half of them corpus files with bytes changed. Fails by a crash, a
 * sanitizer's report, a broken rule or an input that does not end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_prm.h"

enum { MAX_INPUT = 1024, MAX_FILES = 256, HANG_S = 20 };

static struct {
	uint8_t data[MAX_INPUT];
	size_t n;
} files[MAX_FILES];
static unsigned n_files;
static uint64_t rng;

static uint32_t rnd(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33) % n;
}

static void hang(int sig)
{
	static const char text[] = "an input does not end\n";

	(void)sig;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(99);
	abort();
}

static int read_file(const char *name)
{
	FILE *f = fopen(name, "rb");

	if (!f || n_files == MAX_FILES) {
		fprintf(stderr, "%s: cannot be read\n", name);
		if (f)
			fclose(f);
		return 1;
	}
	files[n_files].n = fread(files[n_files].data, 1, MAX_INPUT, f);
	fclose(f);
	n_files++;
	return 0;
}

static void run(const uint8_t *data, size_t n)
{
	/* Exactly n bytes, so that reading one too many shows. */
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	memcpy(copy, data, n);
	alarm(HANG_S);
	fuzz_prm(copy, n);
	free(copy);
}

static void one_random(void)
{
	uint8_t data[MAX_INPUT];
	size_t n = 1 + rnd(MAX_INPUT - 1);

	if (n_files && rnd(2)) {
		unsigned file = rnd(n_files);

		n = files[file].n;
		memcpy(data, files[file].data, n);
		for (unsigned i = rnd(12); n && i; i--)
			data[rnd((uint32_t)n)] = (uint8_t)rnd(256);
	} else {
		for (size_t i = 0; i < n; i++)
			data[i] = (uint8_t)(rnd(3) ? rnd(8) : rnd(256));
	}
	run(data, n);
}

int main(int argc, char **argv)
{
	unsigned long inputs = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;

	rng = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (int i = 3; i < argc; i++)
		if (read_file(argv[i]))
			return 1;
	signal(SIGALRM, hang);
	fuzz_prm_init();
	for (unsigned i = 0; i < n_files; i++)
		run(files[i].data, files[i].n);
	for (unsigned long i = 0; i < inputs; i++)
		one_random();
	printf("%u files, %lu inputs\n", n_files, inputs);
	return 0;
}
