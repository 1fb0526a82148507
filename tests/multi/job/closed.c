/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input, output and error are closed when gdr comes: nothing of its own gets their numbers, and what is
 * printed goes nowhere. */
#include "tests/multi/multi.h"

#include <fcntl.h>

#define BYTES (1u << 20)

static int kept[3];

static void keep_and_close(void)
{
	for (int i = 0; i < 3; i++)
		if (!kept[i])
			kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
	for (int i = 0; i < 3; i++)
		close(i);
}

static void restore(void)
{
	for (int i = 0; i < 3; i++)
		dup2(kept[i], i);
}

/* How many of the three are /dev/null. */
static int nulls(void)
{
	char path[32], at[64];
	int n = 0;

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		memset(at, 0, sizeof(at));
		n += readlink(path, at, sizeof(at) - 1) > 0 && !strcmp(at, "/dev/null");
	}
	return n;
}

/* More than the object is long. Returns what was printed. */
static size_t print_much(void)
{
	static char line[4096];
	size_t n = 0;

	memset(line, 'x', sizeof(line));
	for (unsigned i = 0; i < 64 * BYTES / sizeof(line); i++)
		for (int fd = 1; fd < 3; fd++)
			n += (size_t)write(fd, line, sizeof(line));
	return n;
}

static unsigned wrong(const uint8_t *words)
{
	unsigned n = 0;

	for (unsigned i = 0; i < BYTES; i++)
		n += words[i] != 0x11;
	return n;
}

int main(void)
{
	int by_id, by_init, status;
	gdr_uniqueid_t id;
	uint8_t *words;
	size_t printed;

	keep_and_close();
	status = gdr_get_uniqueid(&id);
	by_id = nulls();
	keep_and_close();
	status = status ? status : gdr_init();
	by_init = nulls();
	words = gdr_malloc(BYTES);
	if (words)
		memset(words, 0x11, BYTES);
	gdr_barrier_all();
	printed = print_much();
	restore();
	CHECK_OK(status);
	CHECK(words);
	CHECK_EQ(by_id, 3);
	CHECK_EQ(by_init, 3);
	CHECK_EQ(printed, 128ull * BYTES);
	CHECK_EQ(wrong(words), 0);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_free(words));
	CHECK_OK(gdr_finalize());
	return 0;
}
