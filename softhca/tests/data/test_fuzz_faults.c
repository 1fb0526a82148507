/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fuzz_faults INPUTS SEED CORPUS...: the files of the corpus, and as many
 * inputs made of them and of the language's words; the same ones each time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_faults.h"

enum { MAX_INPUT = 400, MAX_CORPUS = 64, HANG_S = 20 };

static char corpus[MAX_CORPUS][MAX_INPUT + 1];
static unsigned n_corpus;
static uint64_t rng;

static uint32_t rnd(uint32_t below)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33) % below;
}

static const char *word(void)
{
	static const char *const words[] = {
		"drop", "dup", "reorder", "corrupt", "delay", "slow", "rate", "doorbell", "cqe",
		"first_wqe", "first_cqe", "first_psn", "seed", "mute", "at", "for", "all", "qp", "wqe",
		"pe", "peer", "link", "down", "refuse", "after", "mr", "umem", "error", "*", ":", ";",
		",", "=", "/", " ", "\t", "1", "2", "0x13", "0.5", "1e-3", "5us", "10s", "7ms", "3ns",
		"64kB/s", "10.0.0.2", "[fe80::1]", "999999999999999999999", "1e999", ".", "-", "nan",
		"inf", "0x", "[", "]", "1e", "0x100000000",
	};

	return words[rnd(sizeof(words) / sizeof(*words))];
}

static void insert(char *text, size_t at, size_t cut, const char *what)
{
	char rest[MAX_INPUT + 1];
	size_t len = strlen(text);

	cut = cut < len - at ? cut : len - at;
	snprintf(rest, sizeof(rest), "%s", text + at + cut);
	text[at] = 0;
	snprintf(text + at, MAX_INPUT + 1 - at, "%s%s", what, rest);
}

/* One to four changes: a word put in or in place of something, a byte changed,
 * a piece of another file. */
static void mutate(char *text)
{
	for (unsigned i = 1 + rnd(4); i; i--) {
		size_t len = strlen(text), at = rnd((uint32_t)len + 1);
		char byte[2] = {(char)(1 + rnd(255)), 0};

		switch (rnd(4)) {
		case 0:
			insert(text, at, 0, word());
			break;
		case 1:
			insert(text, at, rnd(8), word());
			break;
		case 2:
			insert(text, at, 1, byte);
			break;
		default:
			insert(text, at, rnd(20), corpus[rnd(n_corpus)] + rnd(8));
		}
	}
}

/* One clause of a file. */
static void append_clause(char *text)
{
	const char *file = corpus[rnd(n_corpus)], *end;

	for (unsigned skip = rnd(4); skip && strchr(file, ';'); skip--)
		file = strchr(file, ';') + 1;
	end = strchr(file, ';');
	snprintf(text + strlen(text), MAX_INPUT + 1 - strlen(text), "%.*s;",
		 (int)(end ? end - file : (long)strlen(file)), file);
}

/* A whole file much changed, or some clauses, hardly changed, in any order. */
static void compose(char *text)
{
	text[0] = 0;
	if (rnd(2)) {
		strcpy(text, corpus[rnd(n_corpus)]);
		mutate(text);
		return;
	}
	for (unsigned i = 1 + rnd(4); i; i--)
		append_clause(text);
	if (rnd(2))
		insert(text, rnd((uint32_t)strlen(text)), rnd(3), word());
}

static void load(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f || n_corpus == MAX_CORPUS) {
		fprintf(stderr, "%s: cannot be read, or too many\n", path);
		exit(1);
	}
	n = fread(corpus[n_corpus], 1, MAX_INPUT, f);
	corpus[n_corpus++][n] = 0;
	fclose(f);
	if (n < 8) {
		fprintf(stderr, "%s: shorter than 8 characters\n", path);
		exit(1);
	}
}

static int run(const char *text)
{
	/* Exactly as long as the text, so that reading past its end shows. */
	size_t n = strlen(text);
	uint8_t *data = malloc(n ? n : 1);
	int taken;

	if (!data)
		exit(1);
	memcpy(data, text, n);
	alarm(HANG_S); /* its signal ends the process */
	taken = fuzz_faults(data, n);
	free(data);
	return taken;
}

int main(int argc, char **argv)
{
	unsigned long inputs = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, taken = 0;
	char text[MAX_INPUT + 1];

	if (argc < 4)
		return 2;
	rng = strtoull(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++)
		load(argv[i]);
	for (unsigned i = 0; i < n_corpus; i++) {
		const char *name = strrchr(argv[3 + i], '/');
		int bad = name && !strncmp(name, "/bad_", 5);

		if (run(corpus[i]) == bad) {
			fprintf(stderr, "%s was %s\n", argv[3 + i], bad ? "taken" : "refused");
			return 1;
		}
	}
	for (unsigned long i = 0; i < inputs; i++) {
		compose(text);
		taken += (unsigned long)run(text);
	}
	printf("%lu inputs, %lu taken\n", inputs, taken);
	return inputs && (!taken || taken == inputs); /* both ways were gone */
}
