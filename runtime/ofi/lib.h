/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric, opened at run time, and what of a provider carries this PE's messages. */
#ifndef GDRI_OFI_LIB_H
#define GDRI_OFI_LIB_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "runtime/core/inet.h"
#include "runtime/core/options.h"
#include "runtime/ofi/keys.h"

struct gdri_ofi_lib {
	void *handle;
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int err);
	uint32_t (*version)(void);
};

/* An endpoint that reaches all PEs, and what it needs. */
struct gdri_ofi_fabric {
	struct gdri_ofi_lib lib;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	bool mr_local, mr_virt, mr_keys, mr_bound, mr_raw; /* of info->domain_attr->mr_mode */
	bool delivers;				   /* has FI_DELIVERY_COMPLETE */
	bool lands; /* bytes of a write come from the first to the last, by who asks for completions alone */
	size_t message;				   /* most bytes that one has */
	bool reaches_gpus; /* memory of GPUs can be registered, and moves without a call of CUDA's */
	struct gdri_ofi_keys keys;		   /* where the program chooses them */
};

/* 0 or -GDR_E*, logged. close: also after any failure of open. */
bool gdri_ofi_lib_is_there(void);
int gdri_ofi_lib_open(struct gdri_ofi_lib *lib);
/* First what a provider's row in lib.c lets pass: of what GDR_OFI_PROVIDER and GDR_OFI_DOMAIN leave, and rather one
 * that delivers; of that provider rather what has this address. from: also NULL. */
int gdri_ofi_choose(struct gdri_ofi_lib *lib, const struct gdri_options *opt, const struct gdri_inet *from,
		    struct fi_info **out, bool *delivers);
/* Its options for the TCP ports that it listens at, without _LOW_RANGE and _HIGH_RANGE; NULL: it has none. */
const char *gdri_ofi_ports(const struct fi_info *info);
/* It leads to this node alone. */
bool gdri_ofi_stays(const struct fi_info *info);
/* gpus: memory of GPUs is to be reached, if the provider can. */
int gdri_ofi_fabric_open(struct gdri_ofi_fabric *f, const struct gdri_options *opt, const struct gdri_inet *from,
			 bool gpus);
/* One more like it: in a domain of its own. */
int gdri_ofi_fabric_again(struct gdri_ofi_fabric *f, const struct gdri_ofi_fabric *first);
void gdri_ofi_fabric_close(struct gdri_ofi_fabric *f);

#define GDRI_OFI_HOST (-1)
/* mr.c: memory of the host (GDRI_OFI_HOST) or of this GPU, registered as the provider wants it: 0 or a negative number
 * of its own. close: also of NULL. */
int gdri_ofi_mr_open(struct gdri_ofi_fabric *f, void *addr, size_t len, int gpu, uint64_t access, struct fid_mr **mr);
void gdri_ofi_mr_close(struct gdri_ofi_fabric *f, struct fid_mr **mr);

#define GDRI_OFI_RAW 64 /* most bytes of a key that who uses it maps (FI_MR_RAW): ucx's */
/* By what other PEs know it: *key, or raw, whose length *key is. 0 or a negative number of libfabric's. */
int gdri_ofi_mr_tell(const struct gdri_ofi_fabric *f, struct fid_mr *mr, uint64_t *key, uint8_t raw[GDRI_OFI_RAW]);
/* Of FI_MR_RAW: another PE's, for use here; *key is the length of raw before. */
int gdri_ofi_key_map(const struct gdri_ofi_fabric *f, uint64_t addr, uint8_t raw[GDRI_OFI_RAW], uint64_t *key);
void gdri_ofi_key_unmap(const struct gdri_ofi_fabric *f, uint64_t key);

#endif
