// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/diag/errors.h"

#include <string.h>

#include <gdr/device.h>

#include "runtime/core/log.h"
#include "runtime/core/text.h"

static void add_peer(struct text *t, const char *before, int pe)
{
	if (pe >= 0)
		text_add(t, "%sPE %d", before, pe);
	else
		text_add(t, "%san unknown PE", before);
}

/* In front of the heap an offset wraps. */
static void add_offset(struct text *t, uint64_t offset)
{
	if ((int64_t)offset < 0)
		text_add(t, "%llu bytes below the heap", -(unsigned long long)offset);
	else
		text_add(t, "heap offset 0x%llx", (unsigned long long)offset);
}

#define CQE_REST 116 /* most of what describe_cqe has to say behind the status */

/* What has no room beside the rest is left out, whole: the numbers are in struct gdr_error, too. */
static void add_note(struct text *t, size_t rest, const char *before, const char *note, const char *behind)
{
	if (t->len + strlen(before) + strlen(note) + strlen(behind) + rest + 1 < t->room)
		text_add(t, "%s%s%s", before, note, behind);
}

static bool is_unaligned_atomic(const struct gdri_error *e)
{
	return e->kind == GDRI_ERROR_CQE && e->op == GDRI_AMO && (e->addr & (e->len == 4 ? 3 : 7));
}

static void describe_cqe(struct text *t, const struct gdri_error *e)
{
	const char *vendor = gdri_vendor_words(e->vendor_syndrome);
	const char *word = e->op == GDRI_PUT || e->op == GDRI_AMO ? gdri_place_word(e->addr) : "";

	if (*word) /* no call of the program's */
		text_add(t, "%s", word);
	else if (e->op == GDRI_AMO)
		gdri_atomic_text(e, t);
	else
		text_add(t, "%s", gdri_call_name(e->op));
	add_peer(t, " to ", e->peer);
	text_add(t, " failed: %s, vendor 0x%02x", gdr_strerror(e->status), e->vendor_syndrome);
	if (*vendor)
		add_note(t, CQE_REST, " (", vendor, ")");
	text_add(t, "; QP 0x%x WQE %u (%s, opcode 0x%02x), %llu bytes at ", e->qpn, e->wqe_index,
		 gdri_opcode_name(e->wqe_opcode), e->wqe_opcode, (unsigned long long)e->len);
	add_offset(t, e->addr);
	if (!e->is_cause)
		add_note(t, 0, "; ", "the cause may be earlier (GDR_CQ=ring keeps it)", "");
	if (e->syndrome == GDRI_SYND_FLUSH && e->status != -GDR_EFLUSHED)
		add_note(t, 0, "; ", "both ends are this PE's: the queue told the flush (0x05) alone", "");
}

/* What the PE that failed told, in words. The word is that PE's to write. */
static void add_told(struct text *t, uint64_t word)
{
	struct gdri_fault f;

	if (!gdri_fault_read(word, GDRI_MAX_PES, &f))
		return;
	text_add(t, "PE %d says: %s", f.pe, gdri_call_name(f.op));
	add_peer(t, " to ", f.peer);
	text_add(t, " failed: %s, vendor 0x%02x", gdr_strerror(f.status), f.vendor);
}

static void describe_told(struct text *t, const struct gdri_error *e)
{
	text_add(t, "%s: ", gdr_strerror(e->status));
	add_told(t, e->local);
}

static void describe_lost(struct text *t, const struct gdri_error *e)
{
	char text[160];

	gdri_place_lost(e->peer, text, sizeof(text));
	text_add(t, "%s", text);
}

/* Another PE gave up a collective because of this one. */
static bool broken_is_own(const struct gdri_error *e)
{
	return e->kind == GDRI_ERROR_BROKEN && gdri_place_is_own(gdri_fault_peer(e->local));
}

/* This one was to tell itself. */
static bool wait_is_own(const struct gdri_error *e)
{
	return e->kind == GDRI_ERROR_WAIT && gdri_place_is_own(e->peer);
}

/* A collective that another PE gave up. The word is that PE's to write. */
static void describe_broken(struct text *t, const struct gdri_error *e)
{
	struct gdri_fault f;

	if (!gdri_fault_read(e->local, GDRI_MAX_PES, &f))
		return;
	if (e->status == -GDR_EMISMATCH && gdri_fault_left(e->local)) { /* gdri_broken_told */
		text_add(t, "gdr_finalize: PE %d gave up a %s that this PE, PE %d, does not make", f.pe,
			 gdri_call_name(f.op), f.peer);
		return;
	}
	text_add(t, "%s: PE %d gave up a %s", gdri_place_call(e), f.pe, gdri_call_name(f.op));
	if (broken_is_own(e))
		text_add(t, " because of this one");
	else if (f.peer != f.pe)
		add_peer(t, " because of ", f.peer);
	if (gdri_fault_left(e->local))
		text_add(t, ", which has called gdr_finalize");
	text_add(t, ": %s", gdr_strerror(f.status));
	if (gdri_place_in_finalize(e))
		return;
	text_add(t, "; ");
	if (e->reason == GDR_TEAM_WORLD + 1)
		text_add(t, "all calls of GDR_TEAM_WORLD end with this until gdr_finalize");
	else if (e->reason)
		text_add(t, "all calls of team %u end with this until it is destroyed", e->reason - 1);
	else
		text_add(t, "gdr_barrier_all, gdr_sync_all and host calls of all PEs end with this until gdr_finalize; "
			    "teams go on");
}

/* What of a grid did not come: struct gdri_waiter.last of gdri_grid_meet. */
static void describe_grid(struct text *t, const struct gdri_error *e)
{
	unsigned n = (unsigned)e->len & ~GDRI_GRID_FIRST;

	text_add(t, "; %u block%s of this PE's grid did not come", n, n == 1 ? "" : "s");
	if (e->len & GDRI_GRID_FIRST)
		text_add(t, n == 1 ? ": block 0" : ", block 0 among them");
	else if (n)
		text_add(t, "; block 0 did");
}

/* The chain of waits is a circle: gdri_blame_circle. */
static bool wait_is_circle(const struct gdri_error *e)
{
	return e->kind == GDRI_ERROR_WAIT && e->status == -GDR_ETIMEOUT && e->reason >> 1 && e->peer >= 0;
}

static bool is_of_all(uint32_t op)
{
	return op == GDRI_BARRIER || op == GDRI_SYNC || op == GDRI_HOST_CALL;
}

/* Two calls that all PEs make, one of host threads and one of device code. */
static bool calls_differ(uint32_t a, uint32_t b)
{
	return is_of_all(a) && is_of_all(b) && (a == GDRI_HOST_CALL) != (b == GDRI_HOST_CALL);
}

static void describe_circle(struct text *t, const struct gdri_error *e)
{
	int closes = (int)(e->reason >> 1 & 0x7ff) - 1;
	uint32_t op = e->reason >> 12 & 0xff, hops = e->reason >> 20;

	text_add(t, "; PE %d waits for ", e->peer);
	if (gdri_place_is_own(closes))
		text_add(t, "this one, PE %d,", closes);
	else
		text_add(t, "PE %d", closes);
	text_add(t, " in %s: ", op == GDRI_HOST_CALL ? "a host call such as gdr_malloc" : gdri_call_name(op));
	if (!gdri_place_is_own(closes))
		text_add(t, "the chain of waits ends in a circle, and none of its PEs can go on");
	else if (hops == 1)
		text_add(t, "they wait for each other");
	else if (hops == 2)
		text_add(t, "PEs %d, %d and %d wait for each other", closes, e->waited_for, e->peer);
	else
		text_add(t, "%u PEs, by PE %d to PE %d, wait for each other", hops + 1, e->waited_for, e->peer);
}

/* Who is to blame, and which of them have called gdr_finalize: one that failed before did so because of another PE, or
 * its own message says why. */
static void describe_left(struct text *t, const struct gdri_error *e)
{
	bool chain = e->peer >= 0 && e->peer != e->waited_for;
	int left = e->reason & 1 ? 1 : gdri_place_finalizes(e->peer); /* as another PE told, or as is known here */

	if (chain && gdri_place_finalizes(e->waited_for) == 2)
		text_add(t, "; PE %d gave up before, and has called gdr_finalize", e->waited_for);
	if (wait_is_circle(e))
		describe_circle(t, e);
	else if (chain && (e->status != -GDR_EPEERFAILED || !e->local))
		text_add(t, "; the chain of waits ends at PE %d", e->peer);
	if (left && e->status == -GDR_ETIMEOUT)
		text_add(t, "; PE %d has called gdr_finalize", e->peer);
	else if (left == 1 && e->status == -GDR_EPEERLOST)
		text_add(t, "; PE %d has called gdr_finalize: it takes no part", e->peer);
	else if (left && e->status == -GDR_EPEERLOST)
		text_add(t, "; PE %d has called gdr_finalize after a failure, which its own message names", e->peer);
}

static void add_word(struct text *t, uint64_t v, bool is_signed)
{
	if (is_signed)
		text_add(t, "%lld", (long long)v);
	else
		text_add(t, "%llu", (unsigned long long)v);
}

/* A word that is not what was waited for: what it is. Whether it has passed a value that it was to have. */
static bool describe_word(struct text *t, const struct gdri_error *e)
{
	static const char *const cmps[] = {[GDR_CMP_EQ] = "==", [GDR_CMP_NE] = "!=", [GDR_CMP_GT] = ">",
					   [GDR_CMP_GE] = ">=", [GDR_CMP_LT] = "<", [GDR_CMP_LE] = "<="};
	uint32_t size = e->line & 0xff, cmp = e->line >> 16;
	bool is_signed = e->line >> 8 & 1, passed;
	uint64_t found = e->local;

	if (!e->line || cmp >= sizeof(cmps) / sizeof(cmps[0]))
		return false;
	if (is_signed && size < 8)
		found = (uint64_t)((int64_t)(found << (64 - 8 * size)) >> (64 - 8 * size));
	passed = cmp == GDR_CMP_EQ && gdri_cmp_holds(found, 8, is_signed, GDR_CMP_GT, e->len);
	text_add(t, "; the word is ");
	add_word(t, found, is_signed);
	text_add(t, ", waited for %s ", cmps[cmp]);
	add_word(t, e->len, is_signed);
	return passed;
}

static void describe_wait(struct text *t, const struct gdri_error *e)
{
	const char *by_host = gdri_place_host_wait(e), *on_stream = by_host ? NULL : gdri_place_stream_wait(e);
	char place[96];

	if (by_host)
		text_add(t, "%s", by_host);
	else if (e->op == GDRI_SIGNAL_WAIT && e->waited_for >= 0) /* which NVSHMEM does not have */
		text_add(t, "gdr_signal_wait_until_from");
	else
		text_add(t, "%s", gdri_place_call(e));
	if (e->waited_for >= 0 && e->op != GDRI_GRID_SYNC)
		text_add(t, " waiting for PE %d", e->waited_for);
	text_add(t, ": %s after %llu.%03llu s", gdr_strerror(e->status),
	    (unsigned long long)(e->waited_ns / 1000000000u),
	    (unsigned long long)(e->waited_ns / 1000000u % 1000u));
	describe_left(t, e);
	if (e->op == GDRI_GRID_SYNC)
		describe_grid(t, e);
	if (e->op == GDRI_QUEUE_FULL)
		text_add(t, "; the queue was full, and the NIC completed %llu entries of it meanwhile",
		    (unsigned long long)e->len);
	if (e->addr) {
		gdri_place_text(e->addr, place, sizeof(place));
		text_add(t, "; ");
		add_offset(t, e->addr);
		text_add(t, "%s", place);
		if (on_stream)
			text_add(t, "; %s was called for it", on_stream);
	}
	if (describe_word(t, e))
		text_add(t, ": it went past that (GDR_CMP_GE?)");
	else if (e->op == GDRI_SIGNAL_WAIT && e->waited_for < 0 && e->status == -GDR_ETIMEOUT)
		text_add(t, "; gdr_signal_wait_until_from would name who did not signal");
	if (e->status != -GDR_EPEERFAILED || !e->local)
		return;
	text_add(t, "; ");
	add_told(t, e->local);
}

/* As the checked build calls it, where that is not the operation's function. */
static void called_as(const struct gdri_error *e, const char **call, const char **nvshmem)
{
#define CALLED_AS(function, number, name, nvshmem) [number] = {name, nvshmem},
	static const char *const names[128][2] = {GDRI_CALLED_AS(CALLED_AS)};
	uint32_t as = e->reason >> 24 & 127;

	gdri_call_names(e->op, call, nvshmem);
	if (!names[as][0])
		return;
	*call = names[as][0];
	*nvshmem = gdri_place_is_nvshmem() ? names[as][1] : "";
}

/* Of names that enum gdri_op has as one. */
static void add_ends(struct text *t, uint32_t form)
{
	static const struct {
		uint32_t bit;
		const char *end;
	} ends[] = {{GDRI_CALL_ALL, "_all"}, {GDRI_CALL_ANY, "_any"}, {GDRI_CALL_SOME, "_some"},
		    {GDRI_CALL_VECTOR, "_vector"}, {GDRI_CALL_FROM, "_from"}, {GDRI_CALL_FOR, "_for"},
		    {GDRI_CALL_SEEN, "_seen"}};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (form & ends[i].bit)
			text_add(t, "%s", ends[i].end);
	}
}

/* The function's name, whole, and before it that of NVSHMEM, if such a call may have been meant. */
static void add_call_form(struct text *t, const struct gdri_error *e)
{
	uint32_t form = e->reason >> 16 << 8;
	bool on_ctx = e->reason >> 31;
	const char *call, *nvshmem;

	called_as(e, &call, &nvshmem);
	if (form & GDRI_CALL_TEST)
		call = "gdr_TYPE_test", nvshmem = *nvshmem ? "nvshmem_TYPE_test" : "";
	if (e->op == GDRI_LOCK && (e->reason & 0xff) == GDRI_ARG_OTHER)
		call = "gdr_clear_lock";
	if (on_ctx || form & (GDRI_CALL_FROM | GDRI_CALL_FOR | GDRI_CALL_SEEN))
		nvshmem = "";
	if (*nvshmem) {
		text_add(t, "%s", nvshmem);
		add_ends(t, form);
		text_add(t, " (");
	}
	if (on_ctx && !strncmp(call, "gdr_", 4))
		text_add(t, "gdr_ctx_%s", call + 4);
	else
		text_add(t, "%s", call);
	add_ends(t, form);
	if (*nvshmem)
		text_add(t, ")");
}

/* The record of the operation, if there was one, says more; of what was refused its reason is here, too. */
static void describe_unseen(struct text *t, const struct gdri_error *e)
{
	text_add(t, "a call by a name of NVSHMEM that returns nothing failed: ");
	if (e->op != GDRI_NONE && e->status == -GDR_EINVAL)
		add_call_form(t, e);
	else if (e->op != GDRI_NONE)
		text_add(t, "%s", gdri_call_name(e->op));
	if (e->peer >= 0)
		text_add(t, " to PE %d", e->peer);
	else if ((e->reason & 0xffu) == GDRI_ARG_PE)
		text_add(t, " to PE %lld", (long long)e->len);
	text_add(t, "%s%s", e->op != GDRI_NONE || e->peer >= 0 ? ": " : "", gdr_strerror(e->status));
	text_add(t, "; nvshmem_finalize says how many did, GDR_NVSHMEM_ERRORS=abort ends the job at the first");
}

static void describe_arg(struct text *t, const struct gdri_error *e)
{
	uint32_t reason = e->reason & 0xff;
	char why[240];

	gdri_refusal_text(e, why, sizeof(why));
	add_call_form(t, e);
	if (e->peer >= 0 && (reason < GDRI_ARG_MATCH || reason > GDRI_ARG_ELSEWHERE))
		text_add(t, " to PE %d", e->peer);
	text_add(t, " refused: %s: %s", gdr_strerror(e->status), why);
}

/* The PE to blame is not lost, but in gdr_finalize; or this one is. */
static bool error_is_of_leaving(const struct gdri_error *e)
{
	if (e->kind == GDRI_ERROR_BROKEN)
		return gdri_fault_left(e->local);
	return e->kind == GDRI_ERROR_WAIT && (e->status == -GDR_EPEERLOST || e->status == -GDR_ETIMEOUT) &&
	       (e->reason & 1 || gdri_place_finalizes(e->peer) == 1);
}

/* This PE and another one are in two calls of all PEs. */
static bool wait_calls_differ(const struct gdri_error *e)
{
	if (e->kind == GDRI_ERROR_BROKEN)
		return !e->reason && e->status == -GDR_ETIMEOUT &&
		       calls_differ(e->op, (uint32_t)(e->local >> 40) & 0xff);
	return wait_is_circle(e) && calls_differ(e->op, e->reason >> 12 & 0xff);
}

/* Where, and what to do: the end of the text. */
static void error_advise(const struct gdri_error *e, struct text *t)
{
	const char *advice = gdri_status_advice(e->status);

	if (e->kind == GDRI_ERROR_ARG && e->line)
		text_add(t, " at %.*s:%u", (int)sizeof(e->file), e->file, e->line);
	if (is_unaligned_atomic(e))
		advice = "the address of an atomic is a multiple of its size";
	else if (e->kind == GDRI_ERROR_WAIT && e->status == -GDR_ETIMEOUT && e->op == GDRI_GRID_SYNC)
		advice = "do all threads of all blocks make this call? else raise ";
	else if (e->kind == GDRI_ERROR_WAIT && e->status == -GDR_ETIMEOUT && e->peer < 0 && e->waited_for < 0)
		advice = "raise ";
	else if (wait_calls_differ(e))
		advice = "all PEs make the calls that all make in one order";
	else if (wait_is_circle(e))
		advice = "look at what each of them waits for";
	else if (error_is_of_leaving(e))
		advice = "what other PEs wait for comes before gdr_finalize";
	else if ((broken_is_own(e) || wait_is_own(e)) && e->status == -GDR_ETIMEOUT)
		advice = "look at what this PE did meanwhile, or raise ";
	if (*advice)
		text_add(t, "; %s%s", advice,
			 error_is_of_leaving(e) || is_unaligned_atomic(e) || wait_is_circle(e) || wait_calls_differ(e)
				 ? "" : gdri_place_limit(e));
	if (e->kind == GDRI_ERROR_WAIT && e->status == -GDR_ETIMEOUT && e->op > GDRI_TEAM_SYNC &&
	    e->op != GDRI_GRID_SYNC)
		text_add(t, "; do all members make this call, in the same form and length?");
}

static void error_say(const struct gdri_error *e, struct text *t)
{
	if (e->kind == GDRI_ERROR_CQE)
		describe_cqe(t, e);
	else if (e->kind == GDRI_ERROR_WAIT)
		describe_wait(t, e);
	else if (e->kind == GDRI_ERROR_TOLD)
		describe_told(t, e);
	else if (e->kind == GDRI_ERROR_LOST)
		describe_lost(t, e);
	else if (e->kind == GDRI_ERROR_BROKEN)
		describe_broken(t, e);
	else if (e->kind == GDRI_ERROR_UNSEEN)
		describe_unseen(t, e);
	else
		describe_arg(t, e);
}

/* Of a text that is too long the middle is cut. */
static void error_text(const struct gdri_error *e, char *buf, size_t room)
{
	char end[192];
	struct text advice = {end, sizeof(end), 0}, t;

	*end = 0;
	error_advise(e, &advice);
	t = (struct text){buf, room - advice.len, 0};
	error_say(e, &t);
	if (t.len == t.room - 1)
		memcpy(buf + t.len - 3, "...", 3);
	memcpy(buf + t.len, end, advice.len + 1);
}

void gdri_error_describe(const struct gdri_error *e, struct gdr_error *out)
{
	memset(out, 0, sizeof(*out));
	out->status = e->status;
	out->peer = e->peer;
	out->waited_for = e->waited_for;
	out->op = gdri_op_name(e->op);
	if (e->kind != GDRI_ERROR_ARG) { /* whose fields say what was expected */
		out->qpn = e->qpn;
		out->wqe_index = e->wqe_index;
		out->waited_ns = e->waited_ns;
	}
	out->opcode = e->wqe_opcode;
	out->syndrome = e->syndrome;
	out->vendor_syndrome = e->vendor_syndrome;
	out->is_cause = e->is_cause;
	out->addr = e->addr;
	out->len = e->kind == GDRI_ERROR_WAIT && e->line ? 0 : e->len;
	out->time_ns = e->time_ns;
	error_text(e, out->text, sizeof(out->text));
}

static uint32_t errors_taken(const struct gdri_dev *dev)
{
	/* relaxed: each record has an acquire of its own */
	uint32_t n = __atomic_load_n(&dev->n_errors, __ATOMIC_RELAXED);

	return n < GDRI_MAX_ERRORS ? n : GDRI_MAX_ERRORS;
}

static int error_is_complete(const struct gdri_error *e)
{
	/* acquire: pairs with the release of the device code that filled the record */
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == 2;
}

/* Or it turned out not to be needed (3). */
static int error_has_ended(const struct gdri_error *e)
{
	/* acquire: pairs with the release of the device code that gave the record up */
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) >= 2;
}

int gdri_errors_copy(const struct gdri_dev *dev, struct gdr_error *out, int max)
{
	uint32_t i, n = errors_taken(dev);
	int found = 0;

	for (i = 0; i < n; i++) {
		if (!error_is_complete(&dev->errors[i]))
			continue;
		if (found < max)
			gdri_error_describe(&dev->errors[i], &out[found]);
		found++;
	}
	return found;
}

bool gdri_errors_have(const struct gdri_dev *dev, int status)
{
	uint32_t i, n = errors_taken(dev);

	for (i = 0; i < n; i++)
		if (error_is_complete(&dev->errors[i]) && dev->errors[i].status == status)
			return true;
	return false;
}

bool gdri_errors_unseen(const struct gdri_dev *dev)
{
	uint32_t i, n = errors_taken(dev);

	for (i = 0; i < n; i++)
		if (error_is_complete(&dev->errors[i]) && dev->errors[i].kind == GDRI_ERROR_UNSEEN)
			return true;
	return false;
}

/* Two waits with one text but for a word of the library's, or whatever PE is lost for. */
static bool errors_are_alike(const struct gdri_error *a, const struct gdri_error *b)
{
	return a->kind == GDRI_ERROR_WAIT && b->kind == GDRI_ERROR_WAIT && a->op == b->op && a->status == b->status &&
	       a->peer == b->peer && a->waited_for == b->waited_for && (a->reason & 1) == (b->reason & 1) &&
	       a->local == b->local &&
	       (a->status == -GDR_EPEERLOST || (*gdri_place_word(a->addr) && *gdri_place_word(b->addr)));
}

/* Each thread that waited for one PE has a record: the line of the first one is what the log counts. */
static const struct gdri_error *errors_first_like(const struct gdri_dev *dev, uint32_t i)
{
	const struct gdri_error *e = dev->errors;

	while (e < &dev->errors[i] && !(error_is_complete(e) && errors_are_alike(e, &dev->errors[i])))
		e++;
	return e;
}

void gdri_errors_log(const struct gdri_dev *dev, uint32_t *seen)
{
	uint32_t n = errors_taken(dev);
	struct gdr_error e;

	for (; *seen < n && error_has_ended(&dev->errors[*seen]); ++*seen) {
		if (!error_is_complete(&dev->errors[*seen]) ||
		    dev->errors[*seen].kind == GDRI_ERROR_LOST) /* said at once */
			continue;
		gdri_error_describe(errors_first_like(dev, *seen), &e);
		gdri_error("%s", e.text);
		if (*seen == GDRI_MAX_ERRORS - 1)
			gdri_error("further errors are counted but not recorded");
	}
}
