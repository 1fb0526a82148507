// SPDX-License-Identifier: BSD-3-Clause
/* lossy NETNS OUTER INNER WORD...: a cable between interface OUTER of this network namespace and INNER of another one,
 * both of which it makes. What comes from INNER is lost and delayed as netem at INNER would: "loss P%", "delay Dms
 * [JITTERms]". Writes "up" when both are there, and ends with who started it. For kernels without sch_netem. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#define ROOM  2048u /* bytes of a frame */
#define SLOTS 1024  /* frames under way; more are lost */
#define SKIP  77

static struct frame {
	uint64_t due; /* ns; 0: free */
	size_t len;
	uint8_t bytes[ROOM];
} frames[SLOTS];

static double loss; /* of 1 */
static uint64_t delay_ns, jitter_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t chance(void)
{
	static uint64_t x = 0x9e3779b97f4a7c15u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static int tap(const char *name)
{
	struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &r)) {
		fprintf(stderr, "lossy: tap device %s: %s\n", name, strerror(errno));
		exit(SKIP);
	}
	return fd;
}

static void parse(char **words)
{
	for (; *words; words++) {
		if (!strcmp(*words, "loss") && words[1]) {
			loss = strtod(*++words, NULL) / 100;
		} else if (!strcmp(*words, "delay") && words[1]) {
			delay_ns = (uint64_t)(strtod(*++words, NULL) * 1e6);
			if (words[1] && *words[1] >= '0' && *words[1] <= '9')
				jitter_ns = (uint64_t)(strtod(*++words, NULL) * 1e6);
		} else {
			fprintf(stderr, "lossy: %s is none of loss, delay\n", *words);
			exit(2);
		}
	}
}

static void pass(int from, int to)
{
	uint8_t bytes[ROOM];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		(void)!write(to, bytes, (size_t)n); /* a queue that is full loses it */
}

static void hold(int from)
{
	uint8_t bytes[ROOM];
	ssize_t n;
	int i;

	while ((n = read(from, bytes, sizeof(bytes))) > 0) {
		for (i = 0; i < SLOTS && frames[i].due; i++)
			;
		if (i == SLOTS || (double)(chance() >> 11) / (double)(1ull << 53) < loss)
			continue;
		frames[i].due = now_ns() + delay_ns + (jitter_ns ? chance() % jitter_ns : 0);
		frames[i].len = (size_t)n;
		memcpy(frames[i].bytes, bytes, (size_t)n);
	}
}

/* Those that are due, the earliest first. Returns when the next one is; 0: there is none. */
static uint64_t deliver(int to)
{
	struct frame *next;
	int i;

	for (;;) {
		next = NULL;
		for (i = 0; i < SLOTS; i++)
			if (frames[i].due && (!next || frames[i].due < next->due))
				next = &frames[i];
		if (!next || next->due > now_ns())
			return next ? next->due : 0;
		(void)!write(to, next->bytes, next->len);
		next->due = 0;
	}
}

int main(int argc, char **argv)
{
	struct timespec wait;
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};
	uint64_t due, now;
	int fd;

	if (argc < 4) {
		fprintf(stderr, "usage: lossy NETNS OUTER INNER [loss P%%] [delay Dms [JITTERms]]\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	parse(argv + 4);
	p[0].fd = tap(argv[2]);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		fprintf(stderr, "lossy: %s: %s\n", argv[1], strerror(errno));
		return SKIP;
	}
	p[1].fd = tap(argv[3]);
	puts("up");
	fflush(stdout);
	for (;;) {
		due = deliver(p[0].fd);
		now = now_ns();
		due = due > now ? due - now : 0;
		wait = (struct timespec){(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
		if (ppoll(p, 2, due ? &wait : NULL, NULL) < 0 && errno != EINTR)
			return 1;
		pass(p[0].fd, p[1].fd);
		hold(p[1].fd);
	}
}
