// SPDX-License-Identifier: BSD-3-Clause
/* Endpoints: opened, bound, enabled, closed. */
#define _GNU_SOURCE
#include "tests/ofi/provider/fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define LINGER_ROUNDS 100 /* of a ms, for what was handed over */

#define ENDPOINT_FREE(list)                                            \
	do {                                                           \
		while ((next = ep->list)) {                            \
			ep->list = ((__typeof__(ep->list))next)->next; \
			free(next);                                    \
		}                                                      \
	} while (0)

static void endpoint_free(struct fake_ep *ep)
{
	struct fake_op *op;
	void *next;

	for (op = ep->ops; op; op = op->next)
		free(op->copy);
	ENDPOINT_FREE(receives);
	ENDPOINT_FREE(ops);
	ENDPOINT_FREE(arrivals);
	ENDPOINT_FREE(departures);
	if (ep->socket >= 0)
		close(ep->socket);
	free(ep);
}

static int endpoint_close(struct fid *fid)
{
	struct fake_ep *ep = FAKE_OF(ep, fid), **at;
	struct timespec ms = {0, 1000000};
	int i;

	if (ep->bound)
		gdr_fake_fault("fi_close of an endpoint that memory is bound to");
	pthread_mutex_lock(&ep->domain->lock);
	for (i = 0; i < LINGER_ROUNDS && ep->enabled; i++) {
		gdr_fake_flush(ep);
		if (!ep->departures)
			break;
		nanosleep(&ms, NULL);
	}
	for (at = &ep->domain->eps; *at != ep; at = &(*at)->next)
		;
	*at = ep->next;
	ep->domain->open--;
	pthread_mutex_unlock(&ep->domain->lock);
	endpoint_free(ep);
	return 0;
}

static int endpoint_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);

	if (ep->enabled)
		return -FI_EINVAL;
	if (to->fclass == FI_CLASS_AV)
		ep->av = FAKE_OF(av, to);
	else if (to->fclass == FI_CLASS_CQ && flags == (FI_TRANSMIT | FI_RECV))
		ep->cq = FAKE_OF(cq, to);
	else
		return -FI_EINVAL;
	return 0;
}

static int endpoint_control(struct fid *fid, int command, void *arg)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);

	(void)arg;
	if (command != FI_ENABLE || !ep->av || !ep->cq || ep->enabled)
		return -FI_EINVAL;
	ep->socket = gdr_fake_socket_open(ep->name);
	ep->enabled = ep->socket >= 0;
	return ep->enabled ? 0 : -FI_EIO;
}

static int endpoint_getname(fid_t fid, void *addr, size_t *len)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);
	size_t room = *len;

	*len = sizeof(ep->name);
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	memcpy(addr, &ep->name, room < *len ? room : *len);
	return room < *len ? -FI_ETOOSMALL : 0;
}

/* Of later headers: FI_OPT_CUDA_API_PERMITTED, FI_OPT_MAX_MSG_SIZE. */
enum { CUDA_API = 10, MESSAGE_SIZE = 12 };

static int endpoint_getopt(fid_t fid, int level, int option, void *value, size_t *len)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);

	if (level != FI_OPT_ENDPOINT || option != MESSAGE_SIZE)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*len = sizeof(size_t);
	memcpy(value, &ep->domain->mode->send, *len);
	return 0;
}

static int endpoint_setopt(fid_t fid, int level, int option, const void *value, size_t len)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);

	if (level != FI_OPT_ENDPOINT || option != CUDA_API || !ep->domain->gpus)
		return -FI_ENOPROTOOPT;
	if (len != sizeof(bool))
		return -FI_EINVAL;
	ep->no_cuda = !*(const bool *)value;
	return ep->no_cuda && ep->domain->mode->calls_cuda ? -FI_EOPNOTSUPP : 0;
}

static struct fi_ops_ep endpoint_ops = {
	.size = sizeof(endpoint_ops), .getopt = endpoint_getopt, .setopt = endpoint_setopt};
static struct fi_ops endpoint_fi_ops = {.size = sizeof(endpoint_fi_ops),
					.close = endpoint_close,
					.bind = endpoint_bind,
					.control = endpoint_control};
static struct fi_ops_cm endpoint_cm = {.size = sizeof(endpoint_cm), .getname = endpoint_getname};

int gdr_fake_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
		      void *context)
{
	struct fake_domain *d = FAKE_OF(domain, domain);
	struct fake_ep *ep = calloc(1, sizeof(*ep));
	const char *seed = getenv("GDRFAKE_SEED");

	if (!ep)
		return -FI_ENOMEM;
	ep->fid = (struct fid_ep){.fid = {FI_CLASS_EP, context, &endpoint_fi_ops},
				  .ops = &endpoint_ops,
				  .cm = &endpoint_cm,
				  .msg = &gdr_fake_msg_ops,
				  .rma = &gdr_fake_rma_ops};
	ep->domain = d;
	ep->socket = -1;
	ep->cuts = getenv("GDRFAKE_FAULT_CUTS");
	ep->flags = info->tx_attr->op_flags;
	ep->next_op = 1;
	ep->receives_end = &ep->receives;
	ep->arrivals_end = &ep->arrivals;
	ep->departures_end = &ep->departures;
	ep->name.pid = (int32_t)getpid();
	if (getrandom(&ep->name.n, sizeof(ep->name.n), 0) != sizeof(ep->name.n))
		gdr_fake_fault("no random numbers");
	ep->random = seed ? (uint32_t)strtoul(seed, NULL, 0) * 2654435761u : ep->name.n;
	pthread_mutex_lock(&d->lock);
	ep->next = d->eps;
	d->eps = ep;
	d->open++;
	pthread_mutex_unlock(&d->lock);
	*out = &ep->fid;
	return 0;
}
