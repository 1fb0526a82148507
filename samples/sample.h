/* SPDX-License-Identifier: BSD-3-Clause */
/* What the larger samples share: options, reporting an error with the first
 * recorded cause, saying what the program runs on, random numbers. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <gdr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Whether the only argument asks for help: told before anything is started. */
static inline int sample_asks_help(int argc, char **argv)
{
	return argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"));
}

/* An option with a whole number, or a switch: one without min and max, which sets its value to 1. */
struct sample_option {
	const char *name, *text;
	long min, max;
	long *value; /* its default, until it is given */
};

static inline int sample_usage(FILE *f, const char *program, const struct sample_option *o, int n, int status)
{
	fprintf(f, "usage: %s [option]...\n", program);
	for (int i = 0; i < n; i++)
		if (o[i].min == o[i].max)
			fprintf(f, "  %-10s %s\n", o[i].name, o[i].text);
		else
			fprintf(f, "  %-10s %s, %ld..%ld (%ld)\n", o[i].name, o[i].text, o[i].min, o[i].max,
				*o[i].value);
	return status;
}

/* Its value, if it is one; else -1, having said what is. */
static inline int sample_option_value(const struct sample_option *o, const char *text)
{
	char *end;
	long value;

	if (text && *text) {
		value = strtol(text, &end, 10);
		if (!*end && value >= o->min && value <= o->max) {
			*o->value = value; /* none other: the usage prints the default */
			return 0;
		}
	}
	fprintf(stderr, "%s takes a number, %ld..%ld, and not \"%s\"\n", o->name, o->min, o->max, text ? text : "");
	return -1;
}

static inline int sample_option_unknown(const char *text)
{
	fprintf(stderr, "\"%s\" is no option\n", text);
	return -1;
}

/* Reads the options. 0: go on; else, less 1, the status with which the program ends, having printed its usage. */
static inline int sample_options(int argc, char **argv, const struct sample_option *o, int n)
{
	if (sample_asks_help(argc, argv))
		return 1 + sample_usage(stdout, argv[0], o, n, 0);
	for (int a = 1; a < argc; a++) {
		int i = 0, bad = 0;

		while (i < n && strcmp(argv[a], o[i].name) != 0)
			i++;
		if (i < n && o[i].min == o[i].max)
			*o[i].value = 1;
		else if (i < n)
			bad = sample_option_value(&o[i], ++a < argc ? argv[a] : NULL);
		else
			bad = sample_option_unknown(argv[a]);
		if (bad)
			return 1 + sample_usage(stderr, argv[0], o, n, 2);
	}
	return 0;
}

/* Spreads the bits of x: another number for each x, as if drawn (splitmix64). */
GDR_BOTH uint64_t sample_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Thread 0's value, for all threads of the block, which all call it; takes the first int of the shared memory. */
GDR_DEVICE int sample_of_first(int value)
{
	int *shared = (int *)gdr_shared();

	gdr_sync_block();
	if (gdr_thread_id() == 0)
		*shared = value;
	gdr_sync_block();
	return *shared;
}

/* Prints what failed, and the first error that device code recorded. Returns status. */
static inline int sample_error(const char *what, int status)
{
	struct gdr_error first;

	fprintf(stderr, "PE %d: %s: %s\n", gdr_host_my_pe(), what, gdr_strerror(status));
	if (gdr_errors(&first, 1) > 0)
		fprintf(stderr, "PE %d: first error: %s\n", gdr_host_my_pe(), first.text);
	return status;
}

/* First status that is not 0 of those that n threads or blocks of a kernel left in device memory. */
static inline int sample_first_status(const int *status, int n)
{
	int one, ret = 0;

	for (int i = 0; i < n && !ret; i++) {
		ret = gdr_memcpy(&one, status + i, sizeof(one));
		ret = ret ? ret : one;
	}
	return ret;
}

static inline void sample_print_setting(void)
{
	struct gdr_job_info job;
	int n = gdr_host_n_pes();

	if (gdr_query(&job))
		return;
	printf("%d PE%s on %d node%s, kernels on the %s, %s bootstrap\n", n, n == 1 ? "" : "s",
	       job.n_nodes, job.n_nodes == 1 ? "" : "s", job.device_kind, job.bootstrap);
	if (job.n_p2p)
		printf("%d PE%s reached through mapped memory\n", job.n_p2p,
		       job.n_p2p == 1 ? "" : "s");
	if (job.n_nic)
		printf("%d PE%s reached through queues of %s%s%s%s, %u queue pairs\n", job.n_nic,
		       job.n_nic == 1 ? "" : "s", job.nic ? job.nic : "?", job.nic_text ? " (" : "",
		       job.nic_text ? job.nic_text : "", job.nic_text ? ")" : "", job.n_queues);
}

/* gdr_init; PE 0 says what the program runs on. Returns 0, or a status after printing it. */
static inline int sample_begin(void)
{
	int ret = gdr_init();

	if (ret)
		fprintf(stderr, "gdr_init: %s\n", gdr_strerror(ret));
	else if (gdr_host_my_pe() == 0)
		sample_print_setting();
	return ret;
}

/* gdr_finalize. Returns the status with which main ends: 0 where ret and that are. */
static inline int sample_end(int ret)
{
	if (gdr_finalize() && !ret) {
		fprintf(stderr, "gdr_finalize failed\n");
		ret = -1;
	}
	return ret ? 1 : 0;
}

static inline int sample_is_cuda(void)
{
	struct gdr_job_info job;

	return !gdr_query(&job) && strcmp(job.device_kind, "cuda") == 0;
}

static inline double sample_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* When what was put on the default stream before had ended: an event of a GPU; on the host device the mark waits. All
 * zero before its first use. */
struct sample_mark {
#ifdef __CUDACC__
	cudaEvent_t event;
#else
	double seconds;
#endif
};

static inline int sample_mark(struct sample_mark *m)
{
#ifdef __CUDACC__
	if ((!m->event && cudaEventCreate(&m->event) != cudaSuccess) || cudaEventRecord(m->event, NULL) != cudaSuccess)
		return -GDR_ESYSTEM;
	return 0;
#else
	int ret = gdr_stream_sync(NULL);

	m->seconds = sample_seconds();
	return ret;
#endif
}

/* Seconds between two marks, behind gdr_stream_sync. */
static inline double sample_between(const struct sample_mark *a, const struct sample_mark *b)
{
#ifdef __CUDACC__
	float ms = 0;

	(void)cudaEventElapsedTime(&ms, a->event, b->event);
	return (double)ms * 1e-3;
#else
	return b->seconds - a->seconds;
#endif
}

#endif
