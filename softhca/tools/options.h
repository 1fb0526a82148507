/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that can be set from outside: the SOFTHCA_* variables, one table.
 * Read once, at the first use; values are checked strictly and a variable that
 * softhca does not know is reported, so that a typing error does not go
 * unnoticed. options.c is the only file that reads the environment. */
#ifndef SOFTHCA_OPTIONS_H
#define SOFTHCA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#include "softhca/tools/profile.h"

enum { HCA_MAX_DEVICES = 4 }; /* sysfs_tree.cmake writes as many trees */

enum hca_link { HCA_LINK_ETH, HCA_LINK_IB };

/* X(field, NAME, TYPE, "default", "help"); TYPE is one of
 *   LINK  enum hca_link: eth or ib
 *   MTU   uint32_t: 256, 512, 1024, 2048 or 4096; 0 when unset
 *   DEVICES  uint32_t, 1 to 4
 *   DEVICE  struct hca_device, see profile.h
 *   BOOL  bool: 0 or 1
 *   UINT  uint32_t, decimal, 0 to 4294967295
 *   NODES  uint32_t, 1 to 65536
 *   LEVEL  uint32_t, 0 to 2
 *   EXIT  uint32_t, 0 to 255
 *   ADDR  const char *: an IPv4 or IPv6 address, NULL when unset
 *   STR   const char *: any text, NULL when unset and the default is "" */
#define HCA_OPTIONS(X)                                                                             \
	X(link, "SOFTHCA_LINK", LINK, "eth", "link layer of the port: eth (RoCEv2) or ib")         \
	X(mtu, "SOFTHCA_MTU", MTU, "",                                                             \
	  "active MTU of the port: 256, 512, 1024, 2048, 4096; unset: what the interface carries") \
	X(devices, "SOFTHCA_DEVICES", DEVICES, "1", "devices to show: 1 to 4 (mlx5_0, mlx5_1, ...)")  \
	X(device, "SOFTHCA_DEVICE", DEVICE, "cx7",                                                 \
	  "which device, and what it has or lacks: [PROFILE][,NAME[=VALUE]...], see below")        \
	X(stats, "SOFTHCA_STATS", STR, "", "1: counters to stderr at exit; a path: appended there") \
	X(addr, "SOFTHCA_ADDR", ADDR, "", "IP address of the port; unset: the first one that is up") \
	X(shm, "SOFTHCA_SHM", BOOL, "1", "0: UDP between processes of one host, too")              \
	X(faults, "SOFTHCA_FAULTS", STR, "", "faults to produce, see docs/softhca.md")              \
	X(strict, "SOFTHCA_STRICT", LEVEL, "0",                                                    \
	  "0 to 2; 1: report what hardware would punish, 2: say so when there was nothing")                \
	X(error_exitcode, "SOFTHCA_ERROR_EXITCODE", EXIT, "0",                                     \
	  "exit status, 1 to 255, of a process that strict mode reported on; 0: its own")          \
	X(nodes, "SOFTHCA_NODES", NODES, "1",                                                      \
	  "make so many hosts of this one, 1 to 65536: gethostname() tells its processes apart by rank")       \
	X(null, "SOFTHCA_NULL", LEVEL, "0",                                                        \
	  "0 to 2, for benchmarks of posting: complete WRITEs without moving data; 1: not inline, 2: all")  \
	X(max_mr, "SOFTHCA_MAX_MR", UINT, "0", "bytes of the largest memory region; 0: no limit")     \
	X(poll_rounds, "SOFTHCA_INLINE", BOOL, "0",                                              \
	  "1: threads that poll an empty completion queue do the device's work themselves")        \
	X(gpu_kernel, "SOFTHCA_GPU_KERNEL", BOOL, "0",                                             \
	  "1: a kernel of one warp moves single words of a GPU's memory, while there are some")     \
	X(debug, "SOFTHCA_DEBUG", LEVEL, "0", "0 silent, 1 control calls, 2 data path, on stderr")

#define HCA_OPTION_CTYPE_LINK enum hca_link
#define HCA_OPTION_CTYPE_MTU  uint32_t
#define HCA_OPTION_CTYPE_BOOL bool
#define HCA_OPTION_CTYPE_UINT uint32_t
#define HCA_OPTION_CTYPE_NODES uint32_t
#define HCA_OPTION_CTYPE_LEVEL uint32_t
#define HCA_OPTION_CTYPE_EXIT uint32_t
#define HCA_OPTION_CTYPE_ADDR const char *
#define HCA_OPTION_CTYPE_DEVICES uint32_t
#define HCA_OPTION_CTYPE_DEVICE struct hca_device
#define HCA_OPTION_CTYPE_STR  const char *

struct hca_options {
#define HCA_OPTION_FIELD(field, name, type, def, help) HCA_OPTION_CTYPE_##type field;
	HCA_OPTIONS(HCA_OPTION_FIELD)
#undef HCA_OPTION_FIELD
};

/* Reads the environment at the first call. Any thread; never fails: a value
 * that cannot be used is reported on stderr and the default taken. */
const struct hca_options *hca_options(void);

/* The host's page, of which the kernel maps no part. Not by sysconf(), which softhca answers. */
static inline uint64_t host_page(void)
{
	return getauxval(AT_PAGESZ);
}

/* As the device's driver sees it: no smaller. */
static inline uint64_t hca_page(void)
{
	uint64_t page = host_page();

	return hca_options()->device.pages && page < 65536 ? 65536 : page;
}

/* Checks the environment as it is now, for the launcher: 0, or -EINVAL and the
 * variable, its value and what it may be in err. */
int hca_options_check(char *err, size_t n);

#endif
