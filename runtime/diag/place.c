// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/diag/errors.h"

#include <stdio.h>
#include <string.h>

#include <gdr/impl/wait/error.h>

#include "runtime/core/state.h"
#include "runtime/mem/suballoc.h"
#include "runtime/net/net.h"
#include "runtime/team/team.h"

static void place_name(const struct gdri_state *st, uint64_t offset, char *buf, size_t room)
{
	uint64_t begin = GDRI_CTL_SIZE + st->teams->bytes, at = 0, size;

	if (offset < begin) {
		snprintf(buf, room, " of PE %d, a word of the library", st->pe);
		return;
	}
	for (int n = 0; (size = gdri_suballoc_next(st->alloc, &at)) && at <= offset - begin; n++, at += size) {
		if (offset - begin - at < size) {
			snprintf(buf, room, " of PE %d: byte %llu of object %d (%llu bytes)", st->pe,
				 (unsigned long long)(offset - begin - at), n, (unsigned long long)size);
			return;
		}
	}
}

void gdri_place_text(uint64_t offset, char *buf, size_t room)
{
	struct gdri_state *st = gdri_state_get();

	*buf = 0;
	/* not waited for: who holds it may wait for queues, and messages are told meanwhile */
	if (!st || pthread_mutex_trylock(&st->local_lock))
		return;
	place_name(st, offset, buf, room);
	pthread_mutex_unlock(&st->local_lock);
}

const char *gdri_place_word(uint64_t offset)
{
	const struct gdri_state *st = gdri_state_get();
	const struct gdri_ctl *ctl = NULL;

	if (offset - offsetof(struct gdri_ctl, barrier) < sizeof(ctl->barrier) ||
	    offset - offsetof(struct gdri_ctl, host_barrier) < sizeof(ctl->host_barrier))
		return "a word of the library, of a barrier,";
	if (offset < GDRI_CTL_SIZE || (st && st->teams && offset < GDRI_CTL_SIZE + st->teams->bytes))
		return "a word of the library";
	return "";
}

void gdri_place_lost(int pe, char *buf, size_t room)
{
	const struct gdri_state *st = gdri_state_get();
	const char *by = st ? st->boot->name : "";

	if (gdri_place_finalizes(pe))
		snprintf(buf, room, "PE %d is lost: its process ended within gdr_finalize, or after that failed", pe);
	else if (!strcmp(by, "pmix"))
		snprintf(buf, room, "PE %d is lost, says the launcher", pe);
	else if (!strcmp(by, "env"))
		snprintf(buf, room, "PE %d is lost: the process with RANK=%d ended before gdr_finalize, or is cut off",
			 pe, pe);
	else
		snprintf(buf, room, "PE %d is lost: its process ended before gdr_finalize, or is cut off", pe);
}

int gdri_place_finalizes(int pe)
{
	const struct gdri_state *st = gdri_state_get();

	if (!st || pe < 0 || pe >= st->n_pes || !st->peers)
		return 0;
	/* acquire: as the waits that it ended (gdri_wait_hear) */
	return (int)(__atomic_load_n(&st->peers[pe].finalizes, __ATOMIC_ACQUIRE) & ~GDRI_PEER_GONE);
}

const char *gdri_place_call(const struct gdri_error *e)
{
	const struct gdri_state *st = gdri_state_get();
	/* acquire: whose name is seen, its time is too; pairs with the release in gdri_call_begin */
	const char *call = st ? __atomic_load_n(&st->call, __ATOMIC_ACQUIRE) : NULL;

	/* of a call before that one the record is older; its clock is the host's */
	if (e->op != GDRI_HOST_CALL || !call || e->time_ns < __atomic_load_n(&st->call_ns, __ATOMIC_RELAXED))
		return gdri_call_name(e->op);
	return call;
}

static const char *place_wait_name(const struct gdri_wait_names *names, const struct gdri_error *e)
{
	const struct gdri_wait_name *w = names->list;
	const char *call;

	/* that of gdri_exec_wait: one for a signal is by a kernel's own call, but for those from a PE */
	if (e->op != GDRI_WAIT_UNTIL && (e->op != GDRI_SIGNAL_WAIT || e->waited_for < 0))
		return NULL;
	for (int i = 0; i < GDRI_WAIT_NAMES; i++, w++) {
		/* acquire: pairs with the release in gdri_wait_name_begin */
		call = __atomic_load_n(&w->call, __ATOMIC_ACQUIRE);
		if (call && e->addr - __atomic_load_n(&w->offset, __ATOMIC_RELAXED) <
				    __atomic_load_n(&w->len, __ATOMIC_RELAXED))
			return call;
	}
	return NULL;
}

const char *gdri_place_stream_wait(const struct gdri_error *e)
{
	const struct gdri_state *st = gdri_state_get();

	return st ? place_wait_name(&st->stream_waits, e) : NULL;
}

const char *gdri_place_host_wait(const struct gdri_error *e)
{
	const struct gdri_state *st = gdri_state_get();

	return st ? place_wait_name(&st->host_waits, e) : NULL;
}

bool gdri_place_is_nvshmem(void)
{
	const struct gdri_state *st = gdri_state_get();

	return st && st->nvshmem;
}

bool gdri_place_is_own(int pe)
{
	const struct gdri_state *st = gdri_state_get();

	return st && pe == st->pe;
}

bool gdri_place_in_finalize(const struct gdri_error *e)
{
	const struct gdri_state *st = gdri_state_get();

	/* the clock of such a record is the host's */
	return st && st->finalize_ns && e->op == GDRI_HOST_CALL &&
	       (e->kind == GDRI_ERROR_WAIT || e->kind == GDRI_ERROR_BROKEN) &&
	       e->time_ns - e->waited_ns >= st->finalize_ns;
}

const char *gdri_place_limit(const struct gdri_error *e)
{
	const struct gdri_state *st = gdri_state_get();

	if (e->status == -GDR_ERETRY && st && st->net && st->net->patience)
		return st->net->patience;
	if (e->status == -GDR_ETIMEOUT && gdri_place_in_finalize(e))
		return "GDR_INIT_TIMEOUT";
	return e->status == -GDR_ERETRY || e->status == -GDR_ETIMEOUT ? "GDR_TIMEOUT" : "";
}
