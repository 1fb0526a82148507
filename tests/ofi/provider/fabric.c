// SPDX-License-Identifier: BSD-3-Clause
/* Fabric, domain and address vector. */
#define _GNU_SOURCE
#include "tests/ofi/provider/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

void gdr_fake_fault(const char *what)
{
	fprintf(stderr, "gdrfake: a fault of the program: %s\n", what);
	abort();
}

/* ---- address vectors ---- */

static int av_close(struct fid *fid)
{
	struct fake_av *av = FAKE_OF(av, fid);

	av->domain->open--;
	free(av->names);
	free(av);
	return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out,
		     uint64_t flags, void *context)
{
	struct fake_av *av = FAKE_OF(av, fid);
	struct fake_name *names;
	size_t i;

	(void)flags, (void)context;
	pthread_mutex_lock(&av->domain->lock);
	names = realloc(av->names, (av->n + count) * sizeof(*names));
	if (names) {
		memcpy(names + av->n, addr, count * sizeof(*names));
		av->names = names;
		for (i = 0; out && i < count; i++)
			out[i] = av->n + i;
		av->n += count;
	}
	pthread_mutex_unlock(&av->domain->lock);
	return names ? (int)count : -FI_ENOMEM;
}

static struct fi_ops av_fi_ops = {.size = sizeof(av_fi_ops), .close = av_close};
static struct fi_ops_av av_ops = {.size = sizeof(av_ops), .insert = av_insert};

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
		   void *context)
{
	struct fake_av *av = calloc(1, sizeof(*av));

	if (!av || attr->type == FI_AV_MAP) {
		free(av);
		return av ? -FI_ENOSYS : -FI_ENOMEM;
	}
	av->fid = (struct fid_av){{FI_CLASS_AV, context, &av_fi_ops}, &av_ops};
	av->domain = FAKE_OF(domain, domain);
	av->domain->open++;
	*out = &av->fid;
	return 0;
}

/* ---- domains ---- */

static int domain_close(struct fid *fid)
{
	struct fake_domain *d = FAKE_OF(domain, fid);

	if (d->open)
		gdr_fake_fault("fi_close of a domain with objects in it");
	if (d->mapped)
		gdr_fake_fault("fi_close of a domain with keys that are mapped");
	pthread_mutex_destroy(&d->lock);
	free(d);
	return 0;
}

static struct fi_ops domain_fi_ops = {
	.size = sizeof(domain_fi_ops), .close = domain_close, .control = gdr_fake_domain_control};
static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = av_open,
	.cq_open = gdr_fake_cq_open,
	.endpoint = gdr_fake_endpoint,
};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	const struct fake_mode *mode = gdr_fake_mode(info->domain_attr->name);
	struct fake_domain *d = mode ? calloc(1, sizeof(*d)) : NULL;

	(void)fabric;
	if (!d)
		return mode ? -FI_ENOMEM : -FI_EINVAL;
	d->fid = (struct fid_domain){
		{FI_CLASS_DOMAIN, context, &domain_fi_ops}, &domain_ops, &gdr_fake_mr_ops};
	d->mode = mode;
	d->gpus = info->caps & FI_HMEM;
	pthread_mutex_init(&d->lock, NULL);
	/* The target of RMA reaches the source's memory. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	*out = &d->fid;
	return 0;
}

/* ---- fabrics ---- */

static int fabric_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static struct fi_ops fabric_fi_ops = {.size = sizeof(fabric_fi_ops), .close = fabric_close};
static struct fi_ops_fabric fabric_ops = {.size = sizeof(fabric_ops), .domain = domain_open};

int gdr_fake_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct fid_fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return -FI_ENOMEM;
	*f = (struct fid_fabric){
		{FI_CLASS_FABRIC, context, &fabric_fi_ops}, &fabric_ops, attr->api_version};
	*out = f;
	return 0;
}
