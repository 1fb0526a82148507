// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/units.h"

#include <pthread.h>

#include <gdr/launch.h>
#include <gdr/status.h>
#include <gdr/version.h>

#include "runtime/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gdri_unit *units;

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
	struct gdri_unit *u;

	pthread_mutex_lock(&lock);
	for (u = units; u; u = u->next)
		all = all && u->queues;
	pthread_mutex_unlock(&lock);
	return all;
}

bool gdri_units_have_any_address(void)
{
	bool all = true;
	struct gdri_unit *u;

	pthread_mutex_lock(&lock);
	for (u = units; u; u = u->next)
		all = all && u->any_address;
	pthread_mutex_unlock(&lock);
	return all;
}

int gdri_cuda_failed(const char *call, int code, const char *text)
{
	gdri_error("CUDA: %s: %s (%d)", call, text, code);
	return -GDR_ESYSTEM;
}

int gdri_units_set(const struct gdri_constants *c)
{
	static const struct gdri_constants none;
	struct gdri_unit *u;
	int ret = 0;

	pthread_mutex_lock(&lock);
	for (u = units; u && !(ret && c); u = u->next) { /* what is taken back is taken from all */
		if (u->abi_version != GDR_ABI_VERSION) {
			gdri_error("a translation unit was compiled with headers of ABI %d, the "
				   "library has ABI %d: compile it again", u->abi_version,
				   GDR_ABI_VERSION);
			ret = -GDR_EVERSION;
		} else if (u->set(c ? c : &none)) {
			gdri_error("CUDA: the library's state cannot be written into a module of the "
				   "program: was it compiled for this GPU?");
			ret = -GDR_ESYSTEM;
		}
	}
	pthread_mutex_unlock(&lock);
	return ret;
}
