// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/path/reach.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "bootstrap/boot.h"

void gdri_reach_look(struct gdri_reach *r, const struct gdr_bootstrap *boot)
{
	struct stat ns;

	gdri_inet_list("", r->at, GDRI_REACH_AT);
	r->pids = stat("/proc/self/ns/pid", &ns) ? 0 : ns.st_ino;
	gdri_boot_hub(boot, &r->hub);
}

static bool reach_one_machine(const struct gdri_reach *a, const struct gdri_reach *b)
{
	return !memcmp(a->at, b->at, sizeof(a->at));
}

/* NULL: the machine has no such address. */
static const struct gdri_inet *reach_find(const struct gdri_reach *r, const struct gdri_inet *a)
{
	for (int i = 0; i < GDRI_REACH_AT; i++)
		if (gdri_inet_is(&r->at[i], a))
			return &r->at[i];
	return NULL;
}

/* Where r is in the network of the base's address a. NULL: it has none there; or the same one, as container engines
 * give each machine, which leads to itself. */
static const struct gdri_inet *reach_beside(const struct gdri_reach *base, const struct gdri_inet *a,
					    const struct gdri_reach *r)
{
	if (reach_one_machine(base, r))
		return a;
	for (int i = 0; i < GDRI_REACH_AT && !reach_find(r, a); i++)
		if (gdri_inet_near(a, &r->at[i]))
			return &r->at[i];
	return NULL;
}

static bool reach_by_all(const struct gdri_reach *all, int n_pes, const struct gdri_reach *base,
			 const struct gdri_inet *a)
{
	for (int i = 0; i < n_pes; i++)
		if (!reach_beside(base, a, &all[i]))
			return false;
	return true;
}

static bool reach_is_better(const struct gdri_inet *a, const struct gdri_inet *b)
{
	return !b || a->rank > b->rank || (a->rank == b->rank && a->mbits > b->mbits);
}

/* Of the base's addresses, among them the hub's if there is one; NULL: none is known to do. */
static const struct gdri_inet *reach_best(const struct gdri_reach *all, int n_pes, const struct gdri_reach *base,
					  const struct gdri_inet *hub)
{
	const struct gdri_inet *best = NULL;

	for (int i = 0; i < GDRI_REACH_AT && base->at[i].family; i++)
		if (reach_by_all(all, n_pes, base, &base->at[i]) && reach_is_better(&base->at[i], best))
			best = &base->at[i];
	if (hub && (!best || !hub->mbits || best->mbits <= hub->mbits || best->rank < hub->rank))
		return hub;
	return best;
}

/* The machine on which the hub is, as others see it, or PE 0's. *hub: its address there. */
static const struct gdri_reach *reach_base(const struct gdri_reach *all, int n_pes, const struct gdri_inet **hub)
{
	int i, j;

	*hub = NULL;
	for (i = 0; i < n_pes && !all[i].hub.family; i++)
		;
	for (j = 0; i < n_pes && j < n_pes; j++) {
		*hub = reach_find(&all[j], &all[i].hub);
		if (*hub)
			return &all[j];
	}
	return all;
}

/* Asks the kernel for the way to an address of that machine that is not this one's, too. */
static bool reach_ask(const struct gdri_reach *own, const struct gdri_reach *other, gdri_reach_route *route,
		      struct gdri_inet *from)
{
	for (int i = 0; i < GDRI_REACH_AT && other->at[i].family; i++)
		if (!reach_find(own, &other->at[i]) && route(&other->at[i], from))
			return true;
	return false;
}

struct gdri_inet gdri_reach_from(const struct gdri_reach *all, int n_pes, int pe, gdri_reach_route *route)
{
	const struct gdri_reach *own = &all[pe], *base, *other;
	const struct gdri_inet *hub, *best, *beside;
	struct gdri_inet from;

	base = reach_base(all, n_pes, &hub);
	best = reach_best(all, n_pes, base, hub);
	beside = best ? reach_beside(base, best, own) : NULL;
	if (best && best == hub && !reach_one_machine(base, own) && route(hub, &from))
		return from;
	if (beside)
		return *beside;
	other = reach_one_machine(base, own) ? all : base;
	for (; other < all + n_pes && reach_one_machine(other, own); other++)
		;
	if (other < all + n_pes && reach_ask(own, other, route, &from))
		return from;
	return own->at[0];
}
