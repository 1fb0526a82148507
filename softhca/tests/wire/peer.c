/* SPDX-License-Identifier: BSD-3-Clause */
/* wire_peer [-d DEVICE] [-g GID_INDEX] [-m MTU] [-p PORT] [-s MAX] [-o OP,OP..] [-n ROUNDS]
 *           [-t rc|uc|ud] [-T TIMEOUT] [-r RETRIES] [-c TRAFFIC_CLASS] [-f FLOW_LABEL] [HOST]
 * Without HOST the server, with it the client, which says what is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/tests/wire/peer.h"

static enum ibv_mtu mtu_of(unsigned bytes)
{
	return bytes <= 256 ? IBV_MTU_256 : bytes <= 512 ? IBV_MTU_512 : bytes <= 1024
		? IBV_MTU_1024 : bytes <= 2048 ? IBV_MTU_2048 : IBV_MTU_4096;
}

static enum ibv_qp_type type_of(const char *name)
{
	return !strcmp(name, "ud") ? IBV_QPT_UD : !strcmp(name, "uc") ? IBV_QPT_UC : IBV_QPT_RC;
}

/* All that the type has. */
static const char *all_ops(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD   ? "send,send_imm"
	       : type == IBV_QPT_UC ? "write,write_imm,send,send_imm"
				    : "write,write_imm,send,send_imm,send_inv,read,fetch_add,cmp_swap,"
				      "mix";
}

int main(int argc, char **argv)
{
	struct peer p = { .type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 14, .retries = 7 };
	const char *list = NULL, *port = "18700";
	uint32_t max = PEER_MAX;
	unsigned rounds = 1;
	int c;

	while ((c = getopt(argc, argv, "d:g:m:p:s:o:n:t:T:r:c:f:")) != -1) {
		unsigned v = optarg ? (unsigned)strtoul(optarg, NULL, 0) : 0;

		switch (c) {
		case 'd': p.device = optarg; break;
		case 'g': p.gid_index = v; break;
		case 'm': p.mtu = mtu_of(v); break;
		case 'p': port = optarg; break;
		case 's': max = v < PEER_MAX ? v : PEER_MAX; break;
		case 'o': list = optarg; break;
		case 'n': rounds = v; break;
		case 't': p.type = type_of(optarg); break;
		case 'c': p.tclass = v; break;
		case 'f': p.flow_label = v; break;
		case 'T': p.timeout = v; break;
		case 'r': p.retries = v; break;
		default: return 2;
		}
	}
	p.server = optind == argc;
	list = list ? list : all_ops(p.type);
	if (p.type == IBV_QPT_UD && max > 128u << p.mtu)
		max = 128u << p.mtu;
	if (peer_open(&p) || peer_tcp(&p, p.server ? NULL : argv[optind], port) ||
	    peer_connect(&p))
		return 1;
	if (p.server ? peer_server(&p) : peer_client(&p, list, max, rounds))
		return 1;
	printf("%s done\n", p.server ? "server" : "client");
	return 0;
}
