// SPDX-License-Identifier: BSD-3-Clause
/* Says what this installation of gdr is, what it would run on, and which
 * options are in force. */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <gdr/host.h>

#include "runtime/team/coll.h"
#include "runtime/core/inet.h"
#include "runtime/core/options.h"
#include "runtime/cuda/cuda.h"
#include "runtime/net/net.h"
#include "tools/check/check.h"

static int usage(FILE *f)
{
	fputs("usage: gdr_info [--check [--json]] [-e | --env] [--coll] [--markdown] [-v | --version] [-h | --help]\n"
	      "  without options: brings the library up (alone, or as a PE of a job) and says on what\n"
	      "  --check          what stands between this machine and kernels that post to its NIC\n"
	      "  --json           that as JSON: share/gdr/check.schema.json is its schema\n"
	      "  -e, --env        options in force, as environment variables\n"
	      "  --coll           which algorithm a collective uses when: a table for GDR_COLL_TABLE\n"
	      "  --markdown       table of all options, docs/options.md\n"
	      "  -v, --version    version of headers and library\n",
	      f);
	return f == stdout ? 0 : 2;
}

static int wrong(const char *why, const char *word)
{
	fprintf(stderr, "gdr_info: %s%s\n", why, word);
	return usage(stderr);
}

static int print_env(void)
{
	struct gdri_options opt;
	int ret = gdri_options_read(&opt, NULL);

	if (!ret)
		ret = gdri_options_check(&opt);
	gdri_options_print(stdout, &opt);
	return ret ? 1 : 0;
}

static int print_coll(void)
{
	struct gdri_coll_rules rules = {0};
	struct gdri_options opt;
	int ret = gdri_options_read(&opt, NULL);

	if (!ret)
		ret = gdri_options_check(&opt);
	if (!ret)
		ret = gdri_coll_load(&rules, opt.coll, opt.coll_table);
	if (!ret)
		gdri_coll_print(stdout, &rules);
	gdri_coll_unload(&rules);
	return ret ? 1 : 0;
}

static int print_version(void)
{
	int v = gdr_version();

	printf("gdr headers %s (ABI %d), library %d.%d.%d\n", GDR_VERSION_STRING, GDR_ABI_VERSION,
	       v / 10000, v / 100 % 100, v % 100);
	return 0;
}

/* How long a peer that does not answer is waited for. */
static void print_patience(void)
{
	struct gdri_options opt;
	const struct gdri_net_how how = {.opt = &opt};
	unsigned int n;
	bool late;

	if (gdri_options_read(&opt, NULL))
		return;
	gdri_net_choose(&opt, gdri_net_present(&how));
	if (gdri_net_chosen(&opt) == &gdri_ofi_ops) {
		printf("patience   a peer that is silent for %.3g s is lost: twice GDR_TIMEOUT; waits end after "
		       "%.3g s\n",
		       2e-3 * (double)opt.timeout_ms, 1e-3 * (double)opt.timeout_ms);
		return;
	}
	n = gdri_ack_timeout(&opt);
	late = gdri_patience(&opt, n) >= 1e-3 * (double)opt.timeout_ms;
	printf("patience   no acknowledgement for %.3g s, %u times, and a peer is lost: %.3g s (GDR_ACK_TIMEOUT=%u, "
	       "GDR_RETRY_COUNT=%u); waits end after %.3g s (GDR_TIMEOUT)%s\n",
	       gdri_patience(&opt, n) / (opt.retry_count + 1), opt.retry_count + 1, gdri_patience(&opt, n), n,
	       opt.retry_count, 1e-3 * (double)opt.timeout_ms,
	       late ? ", and so before the queue's error is known" : "");
}

/* By this machine: one that has what a transport before takes decides for the job. */
static void print_other_nodes(const struct gdri_net_how *how, struct gdri_options *opt)
{
	const struct gdri_net_ops *ops = gdri_net_chosen(opt);
	uint32_t present = gdri_net_present(how);
	struct gdri_net *net = NULL;
	const char *word;
	char lacks[240];

	gdri_net_lacks(opt, present, lacks, sizeof(lacks));
	if (!ops || !gdri_net_choose(opt, present)) {
		printf("other nodes would not be reached: %s\n", ops ? lacks : "GDR_TRANSPORTS allows p2p alone");
		return;
	}
	word = gdri_net_word(opt);
	if (gdri_net_chosen(opt)->open(how, &net))
		printf("other nodes would not be reached: %s does not open, as said", word);
	else if (net->stays)
		printf("other nodes would not be reached: %s, %s, %s", word, net->name, net->stays);
	else
		printf("other nodes would be reached by %s, %s: %s", word, net->name, net->text);
	printf("%s%s%s\n", *lacks ? "; not here: " : "", lacks, *lacks ? "" : "; it is the first of GDR_TRANSPORTS");
	if (net)
		net->ops->close(net);
}

static void print_without_net(const struct gdr_job_info *info)
{
	struct gdri_options opt;
	struct gdri_inet from = {0};
	struct gdri_net_how how = {.opt = &opt, .from = &from};

	gdri_inet_list("", &from, 1);
	printf("NIC        none in use\n");
	if (gdri_options_read(&opt, NULL))
		return;
	if (!strcmp(info->device_kind, "cuda") && gdri_cuda_open(&how.cuda, 0, GDRI_HANDLE_AUTO))
		return;
	print_other_nodes(&how, &opt);
	gdri_cuda_close(how.cuda);
}

static int print_job(void)
{
	struct gdr_job_info info;
	int ret = gdr_init();

	if (ret) {
		fprintf(stderr, "gdr_info: gdr_init: %s\n", gdr_strerror(ret));
		return 1;
	}
	ret = gdr_query(&info);
	if (!ret && gdr_host_my_pe() == 0) {
		print_version();
		printf("device     %s\nbootstrap  %s\nPEs        %d on %d node(s): %d by p2p, %d by NIC\n",
		       info.device_kind, info.bootstrap, gdr_host_n_pes(), info.n_nodes, info.n_p2p,
		       info.n_nic);
		printf("heap       %zu bytes per PE\n", info.heap_size);
		if (info.nic) {
			printf("NIC        %s: %s\nqueues     %u of %u blocks in %s\ndoorbells  %s\n"
			       "memory     %s\n", info.nic, info.nic_text, info.n_queues,
			       info.queue_depth, info.queue_memory, info.doorbell, info.heap_memory);
			print_patience();
		} else {
			print_without_net(&info);
		}
	}
	return gdr_finalize() || ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"env", no_argument, NULL, 'e'},     {"markdown", no_argument, NULL, 'm'},
		{"coll", no_argument, NULL, 'c'},    {"check", no_argument, NULL, 'k'},
		{"version", no_argument, NULL, 'v'}, {"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	int what = -1, c;
	bool json = false;

	while ((c = getopt_long(argc, argv, "evh", longs, NULL)) != -1) {
		if (c == 'j')
			json = true;
		else if (c == '?') /* getopt said why */
			return usage(stderr);
		else if (what != -1)
			return wrong("one option at a time, but for --check --json", "");
		else
			what = c;
	}
	if (optind < argc)
		return wrong("takes no argument: ", argv[optind]);
	if (json && what != 'k')
		return wrong("--json goes with --check", "");
	switch (what) {
	case -1:
		return print_job();
	case 'e':
		return print_env();
	case 'c':
		return print_coll();
	case 'k':
		return check_machine(json);
	case 'm':
		gdri_options_markdown(stdout);
		return 0;
	case 'v':
		return print_version();
	default:
		return usage(stdout);
	}
}
