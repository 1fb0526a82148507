// SPDX-License-Identifier: BSD-3-Clause
/* Registered memory: keys and addresses as the mode has them. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "tests/ofi/provider/fake.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void memory_unbind(struct fake_mr *mr)
{
	if (mr->ep)
		mr->ep->bound--;
	mr->ep = NULL;
}

static int memory_close(struct fid *fid)
{
	struct fake_mr *mr = FAKE_OF(mr, fid), **at;

	pthread_mutex_lock(&mr->domain->lock);
	for (at = &mr->domain->mrs; *at != mr; at = &(*at)->next)
		;
	*at = mr->next;
	memory_unbind(mr);
	mr->domain->open--;
	pthread_mutex_unlock(&mr->domain->lock);
	free(mr);
	return 0;
}

static int memory_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_mr *mr = FAKE_OF(mr, fid);

	(void)flags;
	if (to->fclass != FI_CLASS_EP || mr->ep || !(mr->domain->mode->mr & FI_MR_ENDPOINT))
		return -FI_EINVAL;
	pthread_mutex_lock(&mr->domain->lock);
	mr->ep = FAKE_OF(ep, to);
	mr->ep->bound++;
	pthread_mutex_unlock(&mr->domain->lock);
	return 0;
}

/* Of FI_MR_RAW: the key and what it lies among, which none of the numbers of fi_mr_key has. */
struct memory_raw {
	uint64_t key, addr, sum;
	uint8_t rest[FAKE_RAW - 24];
};

static uint64_t memory_sum(const struct memory_raw *r)
{
	return (r->key ^ r->addr) * 0x9e3779b97f4a7c15ull;
}

static int memory_tell_raw(struct fake_mr *mr, struct fi_mr_raw_attr *a)
{
	struct memory_raw raw = {.key = mr->key, .addr = (uintptr_t)mr->addr};

	if (!(mr->domain->mode->mr & FI_MR_RAW) || *a->key_size < sizeof(raw))
		return -FI_ETOOSMALL;
	raw.sum = memory_sum(&raw);
	memset(raw.rest, 0xfa, sizeof(raw.rest));
	memcpy(a->raw_key, &raw, sizeof(raw));
	*a->key_size = sizeof(raw);
	*a->base_addr = raw.addr;
	return 0;
}

static int memory_map_raw(struct fake_domain *d, const struct fi_mr_map_raw *a)
{
	struct fake_mapped *m = calloc(1, sizeof(*m));
	struct memory_raw raw;

	if (!m)
		return -FI_ENOMEM;
	memcpy(&raw, a->raw_key, sizeof(raw));
	if (a->key_size != sizeof(raw) || raw.sum != memory_sum(&raw) || raw.addr != a->base_addr)
		gdr_fake_fault("what is mapped is no key");
	m->key = raw.key;
	m->next = d->mapped;
	d->mapped = m;
	*a->key = (uintptr_t)m;
	return 0;
}

static void memory_unmap(struct fake_domain *d, uint64_t key)
{
	struct fake_mapped **at = &d->mapped, *m;

	while (*at && (uintptr_t)*at != key)
		at = &(*at)->next;
	m = *at;
	if (!m)
		gdr_fake_fault("a key is unmapped that is not mapped");
	*at = m->next;
	free(m);
}

int gdr_fake_domain_control(struct fid *fid, int command, void *arg)
{
	struct fake_domain *d = FAKE_OF(domain, fid);
	int rc = 0;

	if (!(d->mode->mr & FI_MR_RAW) || (command != FI_MAP_RAW_MR && command != FI_UNMAP_KEY))
		return -FI_ENOSYS;
	pthread_mutex_lock(&d->lock);
	if (command == FI_MAP_RAW_MR)
		rc = memory_map_raw(d, arg);
	else
		memory_unmap(d, *(uint64_t *)arg);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

uint64_t gdr_fake_key(struct fake_domain *d, uint64_t key)
{
	struct fake_mapped *m = d->mapped;

	if (!(d->mode->mr & FI_MR_RAW))
		return key;
	while (m && (uintptr_t)m != key)
		m = m->next;
	if (!m)
		gdr_fake_fault("RMA by a key that is not mapped");
	return m->key;
}

static int memory_control(struct fid *fid, int command, void *arg)
{
	struct fake_mr *mr = FAKE_OF(mr, fid);

	if (command == FI_GET_RAW_MR)
		return memory_tell_raw(mr, arg);
	if (command != FI_ENABLE || !mr->ep || !mr->ep->enabled)
		return -FI_EINVAL;
	pthread_mutex_lock(&mr->domain->lock);
	mr->enabled = true;
	mr->fid.key = mr->key;
	pthread_mutex_unlock(&mr->domain->lock);
	return 0;
}

static struct fi_ops memory_ops = {.size = sizeof(memory_ops),
				   .close = memory_close,
				   .bind = memory_bind,
				   .control = memory_control};

/* 0, or why the program's key is none. */
static int memory_key(struct fake_domain *d, uint64_t requested, uint64_t *out)
{
	const struct fake_mode *m = d->mode;
	struct fake_mr *mr;

	if (m->mr & FI_MR_PROV_KEY) {
		/* high bits, and none of the numbers that a program would choose */
		*out = (++d->next_key << (8 * m->key_size - 16)) | 0xfa4e;
		return 0;
	}
	if (m->key_size < 8 && requested >> (8 * m->key_size))
		return -FI_EKEYREJECTED;
	for (mr = d->mrs; mr; mr = mr->next)
		if (mr->key == requested)
			return -FI_ENOKEY;
	*out = requested;
	return 0;
}

/* Where the fake driver (tests/unit) has memory of its GPU, which a fabric's device reaches. */
static uint8_t *memory_of_gpu(void *addr)
{
	void *(*reach)(unsigned long at);
	void *symbol = dlsym(RTLD_DEFAULT, "fake_reach");

	memcpy(&reach, &symbol, sizeof(reach));
	return symbol ? reach((uintptr_t)addr) : NULL;
}

/* at: where it is moved. */
static int memory_add(struct fake_domain *d, void *addr, uint8_t *at, size_t len, uint64_t access, uint64_t requested,
		      struct fid_mr **out, void *context)
{
	struct fake_mr *mr = at && len ? calloc(1, sizeof(*mr)) : NULL;
	int rc;

	if (!mr)
		return at && len ? -FI_ENOMEM : -FI_EINVAL;
	pthread_mutex_lock(&d->lock);
	rc = memory_key(d, requested, &mr->key);
	if (!rc) {
		mr->domain = d;
		mr->addr = addr;
		mr->at = at;
		mr->len = len;
		mr->access = access;
		mr->enabled = !(d->mode->mr & FI_MR_ENDPOINT);
		mr->fid = (struct fid_mr){{FI_CLASS_MR, context, &memory_ops},
					  d->mode->mr & FI_MR_LOCAL || at != addr ? mr : NULL,
					  mr->enabled && !(d->mode->mr & FI_MR_RAW) ? mr->key : FI_KEY_NOTAVAIL};
		mr->next = d->mrs;
		d->mrs = mr;
		d->open++;
	}
	pthread_mutex_unlock(&d->lock);
	if (rc)
		free(mr);
	else
		*out = &mr->fid;
	return rc;
}

static int memory_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		      uint64_t requested, uint64_t flags, struct fid_mr **out, void *context)
{
	void *addr = (void *)(uintptr_t)buf;

	if (offset || flags)
		return -FI_EINVAL;
	return memory_add(FAKE_OF(domain, fid), addr, addr, len, access, requested, out, context);
}

static int memory_regattr(struct fid *fid, const struct fi_mr_attr *a, uint64_t flags, struct fid_mr **out)
{
	struct fake_domain *d = FAKE_OF(domain, fid);
	uint8_t *at;

	if (a->offset || flags || a->iov_count != 1 || a->iface != FI_HMEM_CUDA || a->device.cuda || !d->gpus)
		return -FI_EINVAL;
	if (getenv("GDRFAKE_NO_GPU_MEMORY"))
		return -FI_EOPNOTSUPP;
	at = memory_of_gpu(a->mr_iov->iov_base);
	return memory_add(d, a->mr_iov->iov_base, at, a->mr_iov->iov_len, a->access, a->requested_key, out, a->context);
}

struct fi_ops_mr gdr_fake_mr_ops = {
	.size = sizeof(gdr_fake_mr_ops), .reg = memory_reg, .regattr = memory_regattr};

uint8_t *gdr_fake_reach(struct fake_ep *ep, uint64_t key, uint64_t addr, uint64_t len,
			uint64_t access)
{
	bool virt = ep->domain->mode->mr & FI_MR_VIRT_ADDR;
	struct fake_mr *mr;

	for (mr = ep->domain->mrs; mr && mr->key != key; mr = mr->next)
		;
	if (!mr || !mr->enabled || (mr->ep && mr->ep != ep) || (mr->access & access) != access)
		return NULL;
	if (virt)
		addr -= (uintptr_t)mr->addr;
	return addr > mr->len || len > mr->len - addr ? NULL : mr->at + addr;
}

uint8_t *gdr_fake_registered(struct fake_ep *ep, void *desc, const void *buf, size_t len, uint64_t access)
{
	struct fake_mr *mr;
	uint64_t at;

	if (!(ep->domain->mode->mr & FI_MR_LOCAL) && !desc)
		return (uint8_t *)(uintptr_t)buf;
	for (mr = ep->domain->mrs; mr && mr != desc; mr = mr->next)
		;
	if (!mr || !mr->enabled || !(mr->access & access))
		return NULL;
	at = (uintptr_t)buf - (uintptr_t)mr->addr;
	return at <= mr->len && len <= mr->len - at ? mr->at + at : NULL;
}
