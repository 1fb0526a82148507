/* SPDX-License-Identifier: BSD-3-Clause */
/* enclose: the namespaces that a test is in, and what stands in for them where the user may make none. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "enclose.h"

#define TMP "/run/gdr-test" /* empty outside */
#define SWEEP_MS 5000

static bool tmpfs(const char *where, const char *mode)
{
	return (!mkdir(where, 0755) || errno == EEXIST) && !mount("tmpfs", where, "tmpfs", 0, mode);
}

bool enclosure_mounts(void)
{
	if (mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) || !tmpfs("/dev/shm", "mode=1777") ||
	    !tmpfs(TMP, "mode=1777") || !tmpfs("/run/netns", "mode=755"))
		return false;
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return false;
	return !setenv("TMPDIR", TMP, 1);
}

static char own_dir[64];

void enclosure_dir(void)
{
	snprintf(own_dir, sizeof(own_dir), "/tmp/gdr-test.XXXXXX");
	if (mkdtemp(own_dir))
		setenv("TMPDIR", own_dir, 1);
	else
		own_dir[0] = 0;
}

static int unlink_one(const char *path, const struct stat *s, int kind, struct FTW *f)
{
	(void)s, (void)kind, (void)f;
	remove(path);
	return 0;
}

void enclosure_dir_remove(void)
{
	if (own_dir[0])
		nftw(own_dir, unlink_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static pid_t parent_of(const char *number)
{
	char path[64], text[512] = "";
	const char *end;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", number);
	f = fopen(path, "re");
	if (!f)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static void kill_children(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && parent_of(e->d_name) == getpid())
			kill(atoi(e->d_name), SIGKILL);
	if (d)
		closedir(d);
}

/* Children of who was killed become the caller's: it is a subreaper. */
void enclosure_sweep(void)
{
	pid_t pid = 1;

	for (int ms = 0; ms < SWEEP_MS && pid >= 0; ms++) {
		kill_children();
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (!pid)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	if (pid >= 0)
		fprintf(stderr, "enclose: processes that SIGKILL does not end within %d ms\n", SWEEP_MS);
}
