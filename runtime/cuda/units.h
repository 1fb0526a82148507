/* SPDX-License-Identifier: BSD-3-Clause */
/* Translation units with CUDA kernels. Each has constants of its own, by which its
 * device code finds the library (gdr/impl/arch/dev.h), and announces itself before main. */
#ifndef GDRI_UNITS_H
#define GDRI_UNITS_H

#include <stdbool.h>

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/arch/unit.h>

/* Does the program have CUDA kernels? */
bool gdri_units_exist(void);
/* Can the kernels of all of them post to queues (no GDR_NO_QUEUES)? */
bool gdri_units_have_queues(void);
/* Do those of all find symmetric memory outside the heap (GDR_ANY_ADDRESS)? */
bool gdri_units_have_any_address(void);
/* Writes c into the constant memory of all units, on the current context's GPU (NULL: hides the
 * library from them). */
int gdri_units_set(const struct gdri_constants *c);
/* gdri_units_set for the units that were added since. */
int gdri_units_set_late(const struct gdri_constants *c);

/* Device code that the program loaded by hand: its constants are found by name. */

struct CUmod_st;
struct gdri_state;

struct gdri_module {
	struct CUmod_st *module;
	void *constants; /* in memory of the GPU */
	uint64_t version; /* their first word as it was */
};

struct gdri_modules {
	struct gdri_module *list;
	int n;
	int library; /* the first ones are its own */
};

/* Callers hold st->local_lock. */
/* Of both -GDR_ETIMEOUT: it is in the list, and what is on its way to it may yet land there. */
int gdri_module_add(struct gdri_state *st, struct CUmod_st *module);
int gdri_module_remove(struct gdri_state *st, struct CUmod_st *module);
/* However that goes, if it is in the list. */
void gdri_module_drop(struct gdri_state *st, struct CUmod_st *module);
/* Do kernels of all, but the library's own, find symmetric memory outside the heap? */
bool gdri_modules_have_any_address(const struct gdri_state *st);
/* Hides the library from all. */
void gdri_modules_forget(struct gdri_state *st);

#endif
