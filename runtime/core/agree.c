// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/core/agree.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/boot.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/hostdev/hostdev_fiber.h"
#include "runtime/mem/heap.h"

#define LATE_MS 100 /* what a PE gets that has no time left */

struct verdict {
	int32_t status;
	char text[188];
};

static void agree_fill(struct verdict *v, int status)
{
	memset(v, 0, sizeof(*v));
	v->status = status;
	if (status)
		strncpy(v->text, gdri_log_last_error(), sizeof(v->text) - 1);
}

/* What a peer sent is untrusted: ends, and only holds what a terminal takes. */
static void agree_clean(struct verdict *v)
{
	char *p;

	v->text[sizeof(v->text) - 1] = 0;
	for (p = v->text; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	if (v->status > 0 || v->status < -127)
		v->status = -GDR_EBOOTSTRAP;
}

static int agree_judge(const struct gdri_state *st, const char *what, uint8_t *all, size_t stride, int own)
{
	struct verdict v;
	int i, failed = 0, first = -1, ret = 0;

	for (i = 0; i < st->n_pes; i++) {
		memcpy(&v, all + (size_t)i * stride, sizeof(v));
		if (!v.status)
			continue;
		failed++;
		agree_clean(&v);
		if (first >= 0)
			continue;
		first = i;
		ret = v.status;
		if (!own) /* else the own error has been logged */
			gdri_error("%s: PE %d failed: %s (%s)", what, i,
				   *v.text ? v.text : "no reason given", gdr_strerror(ret));
	}
	if (failed > 1)
		gdri_info("%s: %d of %d PEs failed, PE %d is the first", what, failed, st->n_pes,
			  first);
	return ret;
}

/* What is left of the limit. With nothing left the PE still comes, so that the others hear why it fails. */
static int time_left(const struct gdri_state *st, const char *what, int *own)
{
	const char *option = st->limit_is_init ? "GDR_INIT_TIMEOUT" : "GDR_TIMEOUT";
	int limit = st->limit_is_init ? st->opt.init_timeout_ms : st->opt.timeout_ms;
	int left = gdri_left_ms(st->deadline_ns);

	gdri_boot_limit(option, limit);
	if (left)
		return left;
	if (!*own) {
		gdri_error("%s: this PE came here only after the limit %s=%dms; raise the option, or find out what "
			   "keeps the PE (GDR_LOG=debug shows each step's time)", what, option, limit);
		*own = -GDR_ETIMEOUT;
	}
	return LATE_MS;
}

int gdri_agree(struct gdri_state *st, const char *what, const void *send, void *recv, size_t len)
{
	size_t stride = sizeof(struct verdict) + len;
	uint8_t *mine = calloc(1, stride), *all = calloc((size_t)st->n_pes, stride);
	int own = st->pending, ret = -GDR_ENOMEM, left = time_left(st, what, &own), i;

	st->pending = 0;
	if (!mine || !all) {
		gdri_error("%s: no memory for %zu bytes from %d PEs", what, stride, st->n_pes);
		gdri_break(st, ret); /* the others wait */
		goto out;
	}
	agree_fill((struct verdict *)mine, own);
	if (len)
		memcpy(mine + sizeof(struct verdict), send, len);
	/* What peers do to the heap through the NIC before their arrival comes before our return, what
	 * they do after theirs behind our arrival. ThreadSanitizer does not see it: pairs with a
	 * device in this process (softhca, mr_accessed). */
	if (st->heap->base)
		gdri_hd_release(st->heap->base);
	ret = st->boot->allgather(st->boot, mine, all, stride, left);
	gdri_break(st, ret); /* not what a PE told: nobody knows how far the others came */
	if (!ret && st->heap->base)
		gdri_hd_acquire(st->heap->base);
	if (!ret)
		ret = agree_judge(st, what, all, stride, own);
	for (i = 0; !ret && len && i < st->n_pes; i++)
		memcpy((uint8_t *)recv + (size_t)i * len,
		       all + (size_t)i * stride + sizeof(struct verdict), len);
	if (own)
		ret = own;
out:
	free(mine);
	free(all);
	return ret;
}
