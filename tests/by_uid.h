/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs by unique id of processes that nobody launches together (tests/launch/plain): RANK, WORLD_SIZE and ID_FILE are
 * in the environment. The id goes from one to the others by a file, as any program has a way of its own. */
#ifndef TESTS_BY_UID_H
#define TESTS_BY_UID_H

#include <gdr.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Of the id's file: as long as the others need to come to it on a crowded machine. */
__attribute__((unused)) static FILE *by_uid_open(const char *name)
{
	int slow = getenv("TEST_SLOW") ? atoi(getenv("TEST_SLOW")) : 1, s = 20 * (slow > 1 ? slow : 1);
	struct timespec nap = {0, 5000000};
	FILE *f = NULL;

	for (int i = 0; i < 200 * s && !(f = fopen(name, "r")); i++)
		nanosleep(&nap, NULL);
	if (!f)
		fprintf(stderr, "no unique id in %s within %d s\n", name, s);
	return f;
}

/* 0: *id is job number `job`'s, which process `maker` makes. */
__attribute__((unused)) static int by_uid_exchange(gdr_uniqueid_t *id, int job, int self, int maker)
{
	char name[300], fresh[300];
	FILE *f;
	int ok;

	snprintf(name, sizeof(name), "%.200s.%d", getenv("ID_FILE"), job);
	snprintf(fresh, sizeof(fresh), "%.200s.%d.new", getenv("ID_FILE"), job);
	if (self == maker) {
		ok = !gdr_get_uniqueid(id);
		f = fopen(fresh, "w");
		if (!f)
			return -1;
		ok = ok && fwrite(id, sizeof(*id), 1, f) == 1; /* else it is empty, and the others end, too */
		return !fclose(f) && !rename(fresh, name) && ok ? 0 : -1;
	}
	f = by_uid_open(name);
	if (!f)
		return -1;
	ok = fread(id, sizeof(*id), 1, f) == 1;
	fclose(f);
	return ok ? 0 : -1;
}

/* gdr_init, by unique id where there is an ID_FILE, else by the launcher. */
__attribute__((unused)) static int by_uid_init(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	gdr_uniqueid_t id;

	if (!getenv("ID_FILE"))
		return gdr_init();
	attr.uniqueid = &id;
	attr.pe = atoi(getenv("RANK"));
	attr.n_pes = atoi(getenv("WORLD_SIZE"));
	return by_uid_exchange(&id, 0, attr.pe, 0) ? -GDR_ESYSTEM : gdr_init_attr(&attr);
}

#endif
