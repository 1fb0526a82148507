/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of the benchmarks: --help, told before anything is started; --plot: what is printed goes to tools/plot as
 * well, which draws the lines RESULT by size. */
#ifndef PERF_HELP_H
#define PERF_HELP_H

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void help_if_asked(int argc, char **argv, const char *text)
{
	if (argc < 2 || (strcmp(argv[1], "-h") && strcmp(argv[1], "--help")))
		return;
	printf("usage: %s\n", text);
	exit(0);
}

/* ---- --plot ---- */

static struct {
	const char *file, *beside;
	FILE *pipe;
} plot;

static inline int plot_is_picture(const char *file)
{
	const char *kind = strrchr(file, '.');

	return kind && (!strcmp(kind, ".svg") || !strcmp(kind, ".png"));
}

/* Takes the options away, which stand in front. Not 0: one has no value. */
static inline int plot_options(int *argc, char ***argv)
{
	while (*argc > 1 && (!strcmp((*argv)[1], "--plot") || !strcmp((*argv)[1], "--beside"))) {
		if (*argc < 3) {
			fprintf(stderr, "%s: %s takes a file\n", (*argv)[0], (*argv)[1]);
			return -1;
		}
		*(strcmp((*argv)[1], "--plot") ? &plot.beside : &plot.file) = (*argv)[2];
		(*argv)[2] = (*argv)[0];
		*argv += 2;
		*argc -= 2;
	}
	if (plot.file && !plot_is_picture(plot.file)) {
		fprintf(stderr, "%s: --plot %s: it draws a .svg or a .png\n", (*argv)[0], plot.file);
		return -1;
	}
	if (plot.beside && !plot.file) {
		fprintf(stderr, "%s: --beside is a curve of --plot\n", (*argv)[0]);
		return -1;
	}
	return 0;
}

/* tools/plot, of a folder above the program, or in the current folder. */
static inline int plot_find(char *tool, size_t room)
{
	char at[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", at, sizeof(at) - 1);
	const char *up;

	at[n > 0 ? n : 0] = 0;
	for (up = dirname(at); *at && strcmp(up, "/"); up = dirname(at)) {
		if (snprintf(tool, room, "%s/tools/plot", up) < (int)room && !access(tool, X_OK))
			return 0;
		memmove(at, up, strlen(up) + 1);
	}
	return access(strcpy(tool, "tools/plot"), X_OK);
}

/* From here on stdout is a pipe, whose reader writes to what stdout was, too. Not 0: it cannot be drawn. */
static inline int plot_begin(void)
{
	char tool[PATH_MAX + 16];

	if (!plot.file)
		return 0;
	if (plot_find(tool, sizeof(tool))) {
		fprintf(stderr, "--plot: there is no tools/plot above the program or here: start it from the clone\n");
		return -1;
	}
	setenv("PERF_PLOT_TOOL", tool, 1);
	setenv("PERF_PLOT_FILE", plot.file, 1);
	setenv("PERF_PLOT_BESIDE", plot.beside ? plot.beside : "", 1);
	plot.pipe = popen("exec 3>&1; tee /dev/fd/3 | \"$PERF_PLOT_TOOL\" -o \"$PERF_PLOT_FILE\" -t gdr_perf gdr=- "
			  "${PERF_PLOT_BESIDE:+\"$PERF_PLOT_BESIDE\"}", "w");
	if (!plot.pipe || dup2(fileno(plot.pipe), STDOUT_FILENO) < 0) {
		perror("--plot");
		return -1;
	}
	return 0;
}

/* Not 0: no picture was written. */
static inline int plot_end(void)
{
	if (!plot.pipe)
		return 0;
	fflush(stdout);
	close(STDOUT_FILENO);
	return pclose(plot.pipe) != 0;
}

#endif
