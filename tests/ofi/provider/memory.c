// SPDX-License-Identifier: BSD-3-Clause
/* Registered memory: keys and addresses as the mode has them. */
#include "tests/ofi/provider/fake.h"

#include <stdlib.h>

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

static int memory_control(struct fid *fid, int command, void *arg)
{
	struct fake_mr *mr = FAKE_OF(mr, fid);

	(void)arg;
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

static int memory_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		      uint64_t offset, uint64_t requested, uint64_t flags, struct fid_mr **out,
		      void *context)
{
	struct fake_domain *d = FAKE_OF(domain, fid);
	struct fake_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr || offset || flags || !len) {
		free(mr);
		return mr ? -FI_EINVAL : -FI_ENOMEM;
	}
	pthread_mutex_lock(&d->lock);
	rc = memory_key(d, requested, &mr->key);
	if (!rc) {
		mr->domain = d;
		mr->addr = (uint8_t *)(uintptr_t)buf;
		mr->len = len;
		mr->access = access;
		mr->enabled = !(d->mode->mr & FI_MR_ENDPOINT);
		mr->fid = (struct fid_mr){{FI_CLASS_MR, context, &memory_ops},
					  d->mode->mr & FI_MR_LOCAL ? mr : NULL,
					  mr->enabled ? mr->key : FI_KEY_NOTAVAIL};
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

struct fi_ops_mr gdr_fake_mr_ops = {.size = sizeof(gdr_fake_mr_ops), .reg = memory_reg};

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
	return addr > mr->len || len > mr->len - addr ? NULL : mr->addr + addr;
}

bool gdr_fake_registered(struct fake_ep *ep, void *desc, const void *buf, size_t len,
			 uint64_t access)
{
	struct fake_mr *mr;
	uint64_t at;

	if (!(ep->domain->mode->mr & FI_MR_LOCAL))
		return true;
	for (mr = ep->domain->mrs; mr && mr != desc; mr = mr->next)
		;
	if (!mr || !mr->enabled || !(mr->access & access))
		return false;
	at = (uintptr_t)buf - (uintptr_t)mr->addr;
	return at <= mr->len && len <= mr->len - at;
}
