/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the proxy runs: off the cores that the program's threads are pinned to, near the NIC. Pure functions over a
 * sysfs tree whose root is an argument ("" for the machine's own) but gdri_ofi_place_look. */
#ifndef GDRI_OFI_PLACE_H
#define GDRI_OFI_PLACE_H

#include <sched.h>
#include <stdbool.h>

#include <rdma/fabric.h>

/* Which CPUs this process has. */
struct gdri_ofi_cpus {
	cpu_set_t allowed; /* to some thread now, or to the process when the library was loaded */
	cpu_set_t pinned;  /* the one CPU of a thread that has one alone */
};

struct gdri_ofi_place {
	bool set;	 /* false: as who starts it */
	bool demanded; /* by GDR_PROXY_CPUS: elsewhere it must not run */
	cpu_set_t cpus;
	char text[160]; /* "CPUs 2-7, near NUMA node 0" */
};

void gdri_ofi_place_look(struct gdri_ofi_cpus *cpus);
/* NUMA node of what carries the domain; -1: it is not known, or there is none. */
int gdri_ofi_place_node(const char *root, const struct fi_info *info);
/* option: GDR_PROXY_CPUS, checked. */
void gdri_ofi_place_choose(const char *root, const char *option, const struct gdri_ofi_cpus *cpus, int node,
			   struct gdri_ofi_place *out);

#endif
