/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_data [OPTION...] [HOST]: server and, with HOST, client. Both write, read, send and count in
 * each other's memory at the same time, as one random plan says, and compare all of their memory
 * with what the plan leaves. It knows nothing of softhca: any RC device will do. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "round.h"

static int usage(void)
{
	fprintf(stderr,
		"usage: verbs_data [OPTION...] [HOST]\n"
		"  -p PORT  TCP port (18516)        -g INDEX  GID index (0)\n"
		"  -q N     queue pairs (4)         -n N      rounds (10)\n"
		"  -o N     operations of a side in a round (200)\n"
		"  -s SIZE  largest message (20000) -S N      pieces of a buffer (4, at most 8)\n"
		"  -d N     depth of send queues (32) -l N    longest list posted at once (4)\n"
		"  -I N     inline up to (188)      -m MTU    path MTU (1024)\n"
		"  -e events  -N ibv_wr_*  -R shared receive queue  -L late receives  -U UC\n"
		"  -D dynamically connected (mlx5), with -N -R\n"
		"  -M memory of a file (memfd), mapped shared\n"
		"  -r SEED  of the plan (1)         -B change a byte: has to be found\n");
	return 2;
}

static int number(const char *text, unsigned least, unsigned most, unsigned *value)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end || end == text || n < least || n > most) {
		fprintf(stderr, "\"%s\" is not a number from %u to %u\n", text, least, most);
		return -1;
	}
	*value = (unsigned)n;
	return 0;
}

static int flag(struct config *c, int option)
{
	switch (option) {
	case 'e': c->events = true; break;
	case 'N': c->new_api = true; break;
	case 'R': c->srq = true; break;
	case 'L': c->late = true; break;
	case 'U': c->unreliable = true; break;
	case 'D': c->dynamic = c->new_api = c->srq = true; break;
	case 'M': c->file = true; break;
	case 'B': c->broken = true; break;
	case 'p': c->port = optarg; break;
	case 'r': c->seed = strtoull(optarg, NULL, 0); break;
	default: return -1;
	}
	return 0;
}

static int parse(struct config *c, int argc, char **argv)
{
	const struct {
		int option;
		unsigned least, most, *value;
	} numbers[] = {
		{'q', 1, PLAN_QPS, &c->qps},	  {'n', 1, 1000000, &c->rounds}, {'o', 1, 4096, &c->ops},
		{'s', 64, 1 << 24, &c->size}, {'S', 1, PLAN_SGES, &c->sges}, {'d', 4, 4096, &c->depth},
		{'l', 1, 16, &c->list},	  {'I', 0, 512, &c->inline_size}, {'m', 256, 4096, &c->mtu},
		{'g', 0, 255, &c->gid},
	};
	int option;

	while ((option = getopt(argc, argv, "q:n:o:s:S:d:l:I:m:g:p:r:eNRLUDBM")) != -1) {
		unsigned i;

		for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (numbers[i].option == option)
				break;
		if (i < sizeof(numbers) / sizeof(numbers[0])) {
			if (number(optarg, numbers[i].least, numbers[i].most, numbers[i].value))
				return -1;
		} else if (flag(c, option)) {
			return -1;
		}
	}
	if (optind < argc)
		c->host = argv[optind++];
	return optind == argc ? 0 : -1;
}

/* Both sides fill both models from the seed. */
static int make_model(struct memory *m, const struct peer *p, uint64_t *state)
{
	m->size = p->plan_size;
	for (int s = 0; s < 2; s++) {
		m->side[s] = malloc(m->size);
		if (!m->side[s])
			return -1;
		for (size_t i = 0; i + 8 <= m->size; i += 8) {
			uint64_t v = draw(state);

			memcpy(m->side[s] + i, &v, 8);
		}
	}
	memcpy(p->memory, m->side[p->side], m->size);
	return 0;
}

static int compare(const struct peer *p, const struct memory *m, unsigned round)
{
	const uint8_t *want = m->side[p->side];
	size_t at = 0, n = 0, first = 0;

	/* Nobody says when a write has come that is not acknowledged. */
	for (unsigned ms = 0; p->config->unreliable && ms < 10000; ms++) {
		if (!memcmp(p->memory, want, m->size))
			break;
		usleep(1000);
	}
	p->memory[m->size / 2] ^= p->config->broken;
	if (!memcmp(p->memory, want, m->size))
		return 0;
	for (; at < m->size; at++)
		if (p->memory[at] != want[at] && !n++)
			first = at;
	fprintf(stderr, "round %u: %zu of %zu bytes are wrong, the first at %zu: %#x for %#x\n",
		round, n, m->size, first, p->memory[first], want[first]);
	return -1;
}

static int run(struct peer *p, struct memory *model, uint64_t *state)
{
	unsigned long long bytes = 0, count = 0;

	for (unsigned i = 0; i < p->config->rounds; i++) {
		struct round r;
		int rc = round_begin(&r, p, model, state) || round_run(&r) || compare(p, model, i);

		for (unsigned j = 0; j < r.plan[0].n; j++, count++)
			bytes += r.plan[0].op[j].length + r.plan[1].op[j].length;
		round_end(&r);
		if (rc)
			return -1;
	}
	printf("verbs_data: %u rounds, %llu operations, %llu bytes, all memory as it has to be\n",
	       p->config->rounds, 2 * count, bytes);
	return 0;
}

int main(int argc, char **argv)
{
	struct config c = {.qps = 4, .rounds = 10, .ops = 200, .size = 20000, .sges = 4,
			   .depth = 32, .inline_size = 188, .list = 4, .mtu = 1024, .seed = 1,
			   .port = "18516"};
	struct memory model = {0};
	struct peer p;
	uint64_t state;
	int rc;

	if (parse(&c, argc, argv))
		return usage();
	/* Later operations of a queue pair use what earlier ones brought, without
	 * polling in between; and addresses are iovas. Data that comes inside
	 * completions (test_transport.c has those) allows neither. */
	setenv("MLX5_SCATTER_TO_CQE", "0", 1);
	state = c.seed;
	if (peer_open(&p, &c))
		return 1;
	rc = make_model(&model, &p, &state) || run(&p, &model, &state);
	free(model.side[0]);
	free(model.side[1]);
	peer_close(&p);
	return rc ? 1 : 0;
}
