// SPDX-License-Identifier: BSD-3-Clause
/* Completion queues. To read one makes progress, and nothing else does. */
#define _GNU_SOURCE /* pthread_getname_np */
#include "tests/ofi/provider/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int cq_close(struct fid *fid)
{
	struct fake_cq *cq = FAKE_OF(cq, fid);
	struct fake_ep *ep;

	for (ep = cq->domain->eps; ep; ep = ep->next)
		if (ep->cq == cq)
			gdr_fake_fault("fi_close of a completion queue of an open endpoint");
	cq->domain->open--;
	free(cq->entries);
	free(cq);
	return 0;
}

void gdr_fake_complete(struct fake_cq *cq, void *context, uint64_t flags, size_t len, int err)
{
	if (cq->n == cq->size)
		gdr_fake_fault("a completion queue overran");
	cq->entries[(cq->first + cq->n++) % cq->size] = (struct fi_cq_err_entry){
		.op_context = context, .flags = flags, .len = len, .err = err, .prov_errno = err};
}

static struct fi_cq_err_entry *cq_head(struct fake_cq *cq)
{
	return cq->n ? &cq->entries[cq->first] : NULL;
}

static void cq_drop(struct fake_cq *cq)
{
	cq->first = (cq->first + 1) % cq->size;
	cq->n--;
}

static uint64_t cq_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void cq_spend(uint64_t ns)
{
	uint64_t begin = ns ? cq_cpu_ns() : 0;

	while (ns && cq_cpu_ns() - begin < ns)
		;
}

/* As where a lock is never given back: from a second on, for threads of one name. */
static void cq_stick(const struct fake_cq *cq)
{
	struct timespec now;
	char name[16] = "";

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!cq->sticks || now.tv_sec < cq->sticks_s)
		return;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	while (!strcmp(name, cq->sticks))
		pause();
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct fake_cq *cq = FAKE_OF(cq, fid);
	struct fi_cq_msg_entry *out = buf;
	struct fi_cq_err_entry *e;
	struct fake_ep *ep;
	ssize_t n = 0;

	cq_spend(cq->read_ns);
	cq_stick(cq);
	pthread_mutex_lock(&cq->domain->lock);
	for (ep = cq->domain->eps; ep; ep = ep->next)
		if (ep->cq == cq && ep->enabled)
			gdr_fake_progress(ep);
	while ((size_t)n < count && (e = cq_head(cq)) && !e->err) {
		out[n++] = (struct fi_cq_msg_entry){e->op_context, e->flags, e->len};
		cq_drop(cq);
	}
	if (!n)
		n = cq->n ? -FI_EAVAIL : -FI_EAGAIN;
	pthread_mutex_unlock(&cq->domain->lock);
	return n;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out, uint64_t flags)
{
	struct fake_cq *cq = FAKE_OF(cq, fid);
	struct fi_cq_err_entry *e;

	(void)flags;
	pthread_mutex_lock(&cq->domain->lock);
	e = cq_head(cq);
	if (e && e->err) {
		*out = *e;
		cq_drop(cq);
	} else {
		e = NULL;
	}
	pthread_mutex_unlock(&cq->domain->lock);
	return e ? 1 : -FI_EAGAIN;
}

static const char *cq_strerror(struct fid_cq *fid, int err, const void *data, char *buf, size_t len)
{
	(void)fid, (void)data;
	snprintf(buf, len, "gdrfake %d", err);
	return buf;
}

static struct fi_ops cq_fi_ops = {.size = sizeof(cq_fi_ops), .close = cq_close};
static struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops), .read = cq_read, .readerr = cq_readerr, .strerror = cq_strerror};

int gdr_fake_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		     void *context)
{
	struct fake_cq *cq = calloc(1, sizeof(*cq));
	struct timespec now;

	if (!cq || attr->format != FI_CQ_FORMAT_MSG || attr->wait_obj != FI_WAIT_NONE ||
	    !attr->size) {
		free(cq);
		return cq ? -FI_ENOSYS : -FI_ENOMEM;
	}
	cq->entries = calloc(attr->size, sizeof(*cq->entries));
	if (!cq->entries) {
		free(cq);
		return -FI_ENOMEM;
	}
	cq->fid = (struct fid_cq){{FI_CLASS_CQ, context, &cq_fi_ops}, &cq_ops};
	cq->size = attr->size;
	clock_gettime(CLOCK_MONOTONIC, &now);
	cq->sticks = getenv("GDRFAKE_STICKS");
	cq->sticks_s = now.tv_sec + 2;
	if (getenv("GDRFAKE_READ_US"))
		cq->read_ns = 1000 * strtoul(getenv("GDRFAKE_READ_US"), NULL, 10);
	cq->domain = FAKE_OF(domain, domain);
	cq->domain->open++;
	*out = &cq->fid;
	return 0;
}
