/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that ends at once behind a call that failed still says why: by exit, from main, by gdr_global_exit. */
#include <gdr.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail_and_leave(int way)
{
	uint64_t *w, v = 1;

	if (gdr_init() || !(w = gdr_malloc(8)))
		return 2;
	if (gdr_put(w, &v, 8, 99) != -GDR_EINVAL)
		return 3;
	if (way == 0)
		exit(1);
	if (way == 1)
		gdr_global_exit(1);
	return 1;
}

/* What a child of this program writes on stderr, in text; its exit status. */
static int child(int way, char *text, size_t room)
{
	size_t at = 0;
	ssize_t n;
	int end[2], status;
	pid_t pid;

	if (pipe(end) || (pid = fork()) < 0)
		return -1;
	if (!pid) {
		dup2(end[1], 2);
		close(end[0]);
		close(end[1]);
		setenv("GDR_BOOTSTRAP", "single", 1); /* its parent is the launcher's process */
		exit(fail_and_leave(way));
	}
	close(end[1]);
	while (at < room - 1 && (n = read(end[0], text + at, room - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = 0;
	close(end[0]);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	static char text[65536];
	int bad = 0;

	for (int way = 0; way < 3; way++) {
		int status = child(way, text, sizeof(text));

		if (status == 1 && strstr(text, "put refused") && strstr(text, "99"))
			continue;
		printf("way %d: status %d, said:\n%s\n", way, status, text);
		bad = 1;
	}
	return bad;
}
