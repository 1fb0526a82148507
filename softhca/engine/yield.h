/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the engine rests by yielding its core. */
#ifndef SOFTHCA_YIELD_H
#define SOFTHCA_YIELD_H

#include <stdbool.h>
#include <stdint.h>

/* The engine's thread, once: to be woken amid the time slice of a thread that spins, where the kernel can. */
void yield_short_turns(void);

/* True while whoever shares the core gives it back quickly. The engine's thread only. */
bool yield_pays(uint64_t now_ns);

/* True when it is time for one. */
bool yield_due(uint64_t now_ns);

/* Yields once, and learns from how long it took. */
void yield_core(void);

#endif
