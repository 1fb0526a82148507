// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cuda/units.h"

#include <pthread.h>

#include <gdr/launch.h>
#include <gdr/status.h>
#include <gdr/version.h>

#include "runtime/core/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gdri_unit *units;
static struct gdri_unit *shown; /* those from here on have what gdri_units_set wrote last; those before came later */

void gdri_unit_add(struct gdri_unit *u)
{
	pthread_mutex_lock(&lock);
	u->next = units;
	units = u;
	pthread_mutex_unlock(&lock);
}

void gdri_unit_remove(struct gdri_unit *u)
{
	struct gdri_unit **at;

	pthread_mutex_lock(&lock);
	for (at = &units; *at && *at != u; at = &(*at)->next)
		;
	if (*at)
		*at = u->next;
	if (shown == u)
		shown = u->next;
	pthread_mutex_unlock(&lock);
}

bool gdri_units_exist(void)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = units != NULL;
	pthread_mutex_unlock(&lock);
	return any;
}

bool gdri_units_have_queues(void)
{
	bool all = true;

	pthread_mutex_lock(&lock);
	for (struct gdri_unit *u = units; u; u = u->next)
		all = all && u->queues;
	pthread_mutex_unlock(&lock);
	return all;
}

bool gdri_units_have_any_address(void)
{
	bool all = true;

	pthread_mutex_lock(&lock);
	for (struct gdri_unit *u = units; u; u = u->next)
		all = all && u->any_address;
	pthread_mutex_unlock(&lock);
	return all;
}

int gdri_cuda_failed(const char *call, int code, const char *text)
{
	return gdri_fail(-GDR_ESYSTEM, "CUDA: %s: %s (%d)", call, text, code);
}

static int units_set(struct gdri_unit *u, const struct gdri_constants *c)
{
	static const struct gdri_constants none;

	if (u->abi_version != GDR_ABI_VERSION)
		return gdri_fail(-GDR_EVERSION,
				 "a translation unit was compiled with headers of ABI %d, the library has ABI %d: "
				 "compile it again",
				 u->abi_version, GDR_ABI_VERSION);
	if (!u->set(c ? c : &none))
		return 0;
	return gdri_fail(-GDR_ESYSTEM, "CUDA: the library's state cannot be written into a module of the program: was "
				       "it compiled for this GPU?");
}

/* Those before `end`. What is taken back (c NULL) is taken from all. */
static int set_until(const struct gdri_unit *end, const struct gdri_constants *c)
{
	int ret = 0, one;

	for (struct gdri_unit *u = units; u != end && !(ret && c); u = u->next) {
		one = units_set(u, c);
		ret = one ? one : ret;
	}
	if (!ret)
		shown = c ? units : NULL;
	return ret;
}

static int set_locked(const struct gdri_constants *c, bool late)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = set_until(late ? shown : NULL, c);
	pthread_mutex_unlock(&lock);
	return ret;
}

int gdri_units_set(const struct gdri_constants *c)
{
	return set_locked(c, false);
}

int gdri_units_set_late(const struct gdri_constants *c)
{
	return set_locked(c, true);
}
