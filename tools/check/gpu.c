// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "tools/check/check.h"
#include "tools/check/site.h"

static void check_driver_key(struct checks *c)
{
	char text[4096];

	if (!site_field("/proc/driver/nvidia/params", "RegistryDwords:", text, sizeof(text)))
		say(c, PEER_MAPPING, NOTE, "/proc/driver/nvidia/params does not say");
	else if (strstr(text, "PeerMappingOverride=1"))
		say(c, PEER_MAPPING, GOOD, "PeerMappingOverride=1");
	else
		say(c, PEER_MAPPING, NOTE, "PeerMappingOverride is not set");
}

static void check_write_order(struct checks *c)
{
	bool late = gdri_cuda_late_writes(c->cuda);

	say(c, WRITE_ORDER, late ? NOTE : GOOD, "%s",
	    late ? "the GPU may see writes of a NIC late"
		 : "the GPU sees writes of a NIC in their order");
}

static void check_peermem_module(struct checks *c)
{
	bool loaded = !access("/sys/module/nvidia_peermem", F_OK) ||
		      !access("/sys/kernel/mm/memory_peers/nv_mem", F_OK);

	say(c, PEERMEM, loaded ? GOOD : NONE, "%s", loaded ? "loaded" : "not loaded");
}

void check_gpu(struct checks *c)
{
	int old = check_hush(), ret = gdri_cuda_open(&c->cuda, 0, GDRI_HANDLE_AUTO);

	check_unhush(old);
	if (ret) {
		c->cuda = NULL;
		say(c, GPU, NONE, "none that can be used: %s; kernels run on the host device",
		    gdri_log_last_error());
		return;
	}
	say(c, GPU, GOOD, "%s", gdri_cuda_text(c->cuda));
	check_driver_key(c);
	check_write_order(c);
	check_peermem_module(c);
}
