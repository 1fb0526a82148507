/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fuzz [SECONDS [SEED [FILE...]]]: the files of the corpus, then random inputs for the data path
 * from a fixed seed, half of them corpus files with bytes changed. Fails by a crash, a sanitizer's
 * report, or an input that does not end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_rc.h"
#include "sim.h"
#include "softhca/engine/dp.h"

enum { MAX_INPUT = 2048, MAX_FILES = 256, HANG_S = 20 };

static struct {
	uint8_t data[MAX_INPUT];
	size_t n;
} files[MAX_FILES];
static unsigned n_files;
static uint64_t rng, inputs;

static uint32_t rnd(void)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33);
}

static void hang(int sig)
{
	static const char text[] = "an input does not end\n";

	(void)sig;
	if (write(2, text, sizeof(text) - 1))
		abort();
	abort();
}

static void read_file(const char *name)
{
	FILE *f = fopen(name, "rb");

	if (!f || n_files == MAX_FILES) {
		fprintf(stderr, "%s: cannot be read\n", name);
		exit(1);
	}
	files[n_files].n = fread(files[n_files].data, 1, MAX_INPUT, f);
	fclose(f);
	n_files++;
}

static void one_rc(void)
{
	uint8_t data[MAX_INPUT];
	size_t n = rnd() % MAX_INPUT;

	if (n_files && rnd() % 2) {
		unsigned file = rnd() % n_files;

		n = files[file].n;
		memcpy(data, files[file].data, n);
		for (unsigned i = rnd() % 12; n && i; i--)
			data[rnd() % n] = (uint8_t)rnd();
	} else {
		for (size_t i = 0; i < n; i++)
			data[i] = (uint8_t)rnd();
	}
	alarm(HANG_S);
	fuzz_rc(data, n);
}

/* IP datagrams from the raw socket, cut and changed. */
static void one_datagram(void)
{
	size_t n = rnd() % 80, off = 0, len = 0;
	uint8_t *ip = malloc(n + 1);
	struct packet_addr a;
	struct packet p;

	if (!ip)
		abort();
	for (size_t i = 0; i < n; i++)
		ip[i] = (uint8_t)(rnd() % 4 ? 0 : rnd());
	if (n > 26) {
		ip[0] = rnd() % 8 ? 0x45 : ip[0];
		ip[25] = (uint8_t)(rnd() % 4 ? n - 20 : rnd());
	}
	/* Exactly n bytes, so that reading one too many shows. */
	ip = realloc(ip, n ? n : 1);
	if (wire_raw_parse(ip, n, &a, &off, &len)) {
		if (off + len > n)
			abort();
		packet_decode(ip + off, len, &p);
	}
	free(ip);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5, end;

	rng = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (int i = 3; i < argc; i++)
		read_file(argv[i]);
	signal(SIGALRM, hang);
	fuzz_rc_init();
	alarm(HANG_S);
	for (unsigned i = 0; i < n_files; i++)
		fuzz_rc(files[i].data, files[i].n);
	end = sim_now() + seconds * 1000000000u;
	for (; sim_now() < end; inputs++) {
		one_rc();
		for (int i = 0; i < 50; i++)
			one_datagram();
	}
	printf("%u files, %llu inputs: %llu WQEs done, %llu error CQEs, %llu NAKs sent and %llu received\n",
	       n_files, (unsigned long long)inputs, (unsigned long long)hca_stats.wqes,
	       (unsigned long long)hca_stats.error_cqes, (unsigned long long)hca_stats.naks_tx,
	       (unsigned long long)hca_stats.naks_rx);
	return 0;
}
