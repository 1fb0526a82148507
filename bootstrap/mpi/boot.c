// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap over an MPI communicator: libgdr_mpi. A round is a message from each PE to each, in a
 * duplicate of the communicator, and not a collective of MPI: a wait that is too long can then say for
 * whom. MPI cannot give up a message under way: what a round leaves behind stays allocated. */
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/mpi/module.h"

#define TAG	  0x6764
#define MAX_BYTES ((size_t)1 << 20)
#define NS_PER_MS 1000000u

enum level { SAY_ERROR, SAY_WARN, SAY_INFO }; /* the first of runtime/core/log.h */

struct head {
	uint64_t round, len;
};

struct mpi_boot {
	struct gdr_bootstrap pub; /* first: the library casts */
	gdri_mpi_say *say;
	gdri_mpi_waited *waited;
	MPI_Comm comm;
	uint64_t round;
	bool broken; /* a round failed here: messages may be under way */
};

static void mpi_say(const struct mpi_boot *b, enum level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void mpi_say(const struct mpi_boot *b, enum level level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	b->say((int)level, text);
}

static uint64_t mpi_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t deadline_in(int ms)
{
	return mpi_now_ns() + (uint64_t)ms * NS_PER_MS;
}

static int mpi_call_failed(const struct mpi_boot *b, const char *call, int err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n;

	MPI_Error_string(err, text, &n);
	mpi_say(b, SAY_ERROR, "bootstrap: %s failed: %.300s", call, text);
	return -GDR_EBOOTSTRAP;
}

/* MPI has no wait with a limit. False: expired. */
static bool pause_until(uint64_t deadline, unsigned *spins)
{
	struct timespec t = {0, 20000};

	if (++*spins < 100)
		sched_yield();
	else
		nanosleep(&t, NULL);
	return mpi_now_ns() < deadline;
}

static bool mpi_is_usable(const struct mpi_boot *b)
{
	int up = 0, down = 0;

	MPI_Initialized(&up);
	if (up)
		MPI_Finalized(&down);
	if (up && !down)
		return true;
	mpi_say(b, SAY_ERROR, "bootstrap: MPI is %s: the job by communicator needs MPI from before gdr_init to "
		"behind gdr_finalize%s", up ? "finalized" : "not initialised",
		up ? "" : " (or the program uses another MPI than the one that libgdr_mpi was built with)");
	return false;
}

/* ---- a round ---- */

struct exchange {
	int n;
	size_t len, stride;
	MPI_Request *recvs, *sends; /* [n] */
	int *which;		    /* [n] */
	MPI_Status *status;	    /* [n] */
	bool *here;		    /* [n] */
	unsigned char *out, *in;    /* one message; [n] */
};

static void free_exchange(struct exchange *x)
{
	free(x->recvs);
	free(x->sends);
	free(x->which);
	free(x->status);
	free(x->here);
	free(x->out);
	free(x->in);
	free(x);
}

static struct exchange *new_exchange(const struct mpi_boot *b, size_t len)
{
	struct exchange *x = calloc(1, sizeof(*x));
	size_t n = (size_t)b->pub.n_pes;

	if (!x)
		return NULL;
	x->n = b->pub.n_pes;
	x->len = len;
	x->stride = sizeof(struct head) + len;
	x->recvs = malloc(n * sizeof(*x->recvs));
	x->sends = malloc(n * sizeof(*x->sends));
	x->which = calloc(n, sizeof(*x->which));
	x->status = calloc(n, sizeof(*x->status));
	x->here = calloc(n, sizeof(*x->here));
	x->out = malloc(x->stride);
	x->in = malloc(n * x->stride);
	if (x->recvs && x->sends && x->which && x->status && x->here && x->out && x->in) {
		for (size_t i = 0; i < n; i++)
			x->recvs[i] = x->sends[i] = MPI_REQUEST_NULL;
		return x;
	}
	free_exchange(x);
	return NULL;
}

static int mpi_post(const struct mpi_boot *b, struct exchange *x, const void *send)
{
	const struct head h = {b->round, x->len};
	int i, err = MPI_SUCCESS, bytes = (int)x->stride;

	memcpy(x->out, &h, sizeof(h));
	if (x->len)
		memcpy(x->out + sizeof(h), send, x->len);
	for (i = 0; i < x->n && !err; i++) {
		if (i != b->pub.pe)
			err = MPI_Irecv(x->in + (size_t)i * x->stride, bytes, MPI_BYTE, i, TAG, b->comm,
					&x->recvs[i]);
	}
	for (i = 0; i < x->n && !err; i++) {
		if (i != b->pub.pe)
			err = MPI_Isend(x->out, bytes, MPI_BYTE, i, TAG, b->comm, &x->sends[i]);
	}
	memcpy(x->in + (size_t)b->pub.pe * x->stride, x->out, x->stride);
	x->here[b->pub.pe] = true;
	return err ? mpi_call_failed(b, "MPI_Irecv or MPI_Isend", err) : 0;
}

/* What PE `pe` sent. */
static int mpi_judge(const struct mpi_boot *b, const struct exchange *x, int pe, const MPI_Status *s, bool status_set)
{
	struct head h = {0, 0};
	int bytes = 0, class = MPI_SUCCESS;

	if (status_set && s->MPI_ERROR != MPI_SUCCESS) {
		MPI_Error_class(s->MPI_ERROR, &class);
		if (class != MPI_ERR_TRUNCATE)
			return mpi_call_failed(b, "a receive", s->MPI_ERROR);
	}
	MPI_Get_count(s, MPI_BYTE, &bytes);
	if (class == MPI_SUCCESS && bytes >= (int)sizeof(h))
		memcpy(&h, x->in + (size_t)pe * x->stride, sizeof(h));
	if (class == MPI_SUCCESS && bytes == (int)x->stride && h.round == b->round && h.len == x->len)
		return 0;
	mpi_say(b, SAY_ERROR, "bootstrap: PE %d contributes %s to a collective than this PE (%zu); check that all "
		"PEs run the same program and library and make the same calls", pe,
		class || bytes != (int)x->stride ? "another number of bytes" : "to another round", x->len);
	return -GDR_EMISMATCH;
}

static int mpi_expired(const struct mpi_boot *b, const struct exchange *x, int timeout_ms)
{
	char text[200] = "";
	size_t at = 0;

	for (int i = 0; i < x->n && at < sizeof(text); i++) {
		if (!x->here[i])
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", at ? ", " : "", i);
	}
	mpi_say(b, SAY_ERROR, "bootstrap: a collective of %d PEs did not complete within %s; PEs that had not "
		"entered it: %s; check whether they are stopped, have exited, are in another call, or are just "
		"slow (then raise the time limit)", x->n, b->waited(timeout_ms, 0),
		at ? text : "none (they do not receive)");
	return -GDR_ETIMEOUT;
}

static int take_some(const struct mpi_boot *b, struct exchange *x, int *left)
{
	int got = 0, err, rc = 0;

	err = MPI_Testsome(x->n, x->recvs, &got, x->which, x->status);
	if (err != MPI_SUCCESS && got <= 0)
		return mpi_call_failed(b, "MPI_Testsome", err);
	for (int i = 0; i < got && !rc; i++) {
		rc = mpi_judge(b, x, x->which[i], &x->status[i], err != MPI_SUCCESS);
		x->here[x->which[i]] = true;
		--*left;
	}
	return rc;
}

static int mpi_await_all(const struct mpi_boot *b, struct exchange *x, int timeout_ms)
{
	uint64_t deadline = deadline_in(timeout_ms);
	int left = x->n - 1, sent = 0, rc = 0, err;
	unsigned spins = 0;

	while (!rc) {
		if (left)
			rc = take_some(b, x, &left);
		err = MPI_Testall(x->n, x->sends, &sent, MPI_STATUSES_IGNORE);
		if (err != MPI_SUCCESS && !rc)
			rc = mpi_call_failed(b, "a send", err);
		if (rc || (!left && sent))
			return rc;
		if (!pause_until(deadline, &spins))
			return mpi_expired(b, x, timeout_ms);
	}
	return rc;
}

static int mpi_run_round(struct mpi_boot *b, const void *send, void *recv, size_t len, int timeout_ms)
{
	struct exchange *x = new_exchange(b, len);
	int rc;

	if (!x) {
		mpi_say(b, SAY_ERROR, "bootstrap: no memory to gather %zu bytes of %d PEs", len, b->pub.n_pes);
		return -GDR_ENOMEM;
	}
	b->round++;
	rc = mpi_post(b, x, send);
	if (!rc)
		rc = mpi_await_all(b, x, timeout_ms);
	if (rc)
		return rc; /* MPI still has the buffers */
	for (int i = 0; i < x->n && len; i++)
		memcpy((unsigned char *)recv + (size_t)i * len,
		       x->in + (size_t)i * x->stride + sizeof(struct head), len);
	free_exchange(x);
	return 0;
}

/* ---- the contract ---- */

static int mpi_allgather(struct gdr_bootstrap *pub, const void *send, void *recv, size_t len, int timeout_ms)
{
	struct mpi_boot *b = (struct mpi_boot *)pub;
	int rc;

	if (timeout_ms <= 0 || len > MAX_BYTES || (len && (!send || !recv))) {
		mpi_say(b, SAY_ERROR, "bootstrap: allgather of %zu bytes within %d ms is not possible", len,
			timeout_ms);
		return -GDR_EINVAL;
	}
	if (b->broken) {
		mpi_say(b, SAY_ERROR, "bootstrap: no more collectives after one that failed: the PEs are out of "
			"step; end the job");
		return -GDR_ESTATE;
	}
	rc = mpi_is_usable(b) ? mpi_run_round(b, send, recv, len, timeout_ms) : -GDR_ESTATE;
	b->broken = rc != 0;
	return rc;
}

static int mpi_barrier(struct gdr_bootstrap *b, int timeout_ms)
{
	return mpi_allgather(b, NULL, NULL, 0, timeout_ms);
}

static int mpi_abort(struct gdr_bootstrap *pub, int code, const char *text)
{
	struct mpi_boot *b = (struct mpi_boot *)pub;

	mpi_say(b, SAY_ERROR, "abort of the job with status %d: %s", code, text ? text : "");
	if (!mpi_is_usable(b))
		return -GDR_ESTATE;
	return MPI_Abort(b->comm, code) ? -GDR_EBOOTSTRAP : 0;
}

/* MPI ends the job, or does not know. */
static int mpi_on_peer_lost(struct gdr_bootstrap *b, void (*fn)(void *arg, int pe), void *arg)
{
	(void)b;
	(void)fn;
	(void)arg;
	return 0;
}

/* A communicator with messages under way is not freed: that could wait for a PE that is gone. */
static void mpi_finalize(struct gdr_bootstrap *pub, int timeout_ms)
{
	struct mpi_boot *b = (struct mpi_boot *)pub;

	(void)timeout_ms;
	if (!b->broken && mpi_is_usable(b))
		MPI_Comm_free(&b->comm);
	free(b);
}

/* ---- opening ---- */

static int mpi_duplicate(struct mpi_boot *b, MPI_Comm comm, int timeout_ms)
{
	uint64_t deadline = deadline_in(timeout_ms);
	MPI_Request *request = malloc(sizeof(*request)); /* outlives us when it is late */
	unsigned spins = 0;
	int err, done = 0;

	if (!request)
		return -GDR_ENOMEM;
	err = MPI_Comm_idup(comm, &b->comm, request);
	while (!err && !done) {
		err = MPI_Test(request, &done, MPI_STATUS_IGNORE);
		if (!err && !done && !pause_until(deadline, &spins)) {
			mpi_say(b, SAY_ERROR, "bootstrap: MPI_Comm_idup of the communicator did not end within %s: "
				"not all of its ranks call gdr_init with it", b->waited(timeout_ms, 0));
			return -GDR_ETIMEOUT;
		}
	}
	free(request);
	if (err)
		return mpi_call_failed(b, "MPI_Comm_idup", err);
	MPI_Comm_set_errhandler(b->comm, MPI_ERRORS_RETURN);
	return 0;
}

/* The program's communicator may end the process on errors: not those of ours, which are returned. */
static int duplicate_quietly(struct mpi_boot *b, MPI_Comm comm, int timeout_ms)
{
	MPI_Errhandler theirs;
	int rc;

	MPI_Comm_get_errhandler(comm, &theirs);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	rc = mpi_duplicate(b, comm, timeout_ms);
	MPI_Comm_set_errhandler(comm, theirs);
	MPI_Errhandler_free(&theirs);
	return rc;
}

static int mpi_describe(struct mpi_boot *b, MPI_Comm comm)
{
	int inter = 0;

	if (comm == MPI_COMM_NULL) {
		mpi_say(b, SAY_ERROR, "bootstrap: the communicator is MPI_COMM_NULL");
		return -GDR_EINVAL;
	}
	MPI_Comm_test_inter(comm, &inter);
	if (inter) {
		mpi_say(b, SAY_ERROR, "bootstrap: an intercommunicator has no ranks that could be PEs");
		return -GDR_EINVAL;
	}
	MPI_Comm_rank(comm, &b->pub.pe);
	MPI_Comm_size(comm, &b->pub.n_pes);
	return 0;
}

static void mpi_fill(struct mpi_boot *b)
{
	b->pub.version = GDR_BOOTSTRAP_VERSION;
	b->pub.size = sizeof(b->pub);
	b->pub.node = -1;
	b->pub.name = "mpi";
	if (gethostname(b->pub.hostname, sizeof(b->pub.hostname)) || !b->pub.hostname[0])
		snprintf(b->pub.hostname, sizeof(b->pub.hostname), "localhost");
	b->pub.hostname[sizeof(b->pub.hostname) - 1] = '\0';
	b->pub.allgather = mpi_allgather;
	b->pub.barrier = mpi_barrier;
	b->pub.abort = mpi_abort;
	b->pub.on_peer_lost = mpi_on_peer_lost;
	b->pub.finalize = mpi_finalize;
}

__attribute__((visibility("default"))) gdri_mpi_open_fn gdri_mpi_open_2;

int gdri_mpi_open_2(struct gdr_bootstrap **out, const void *comm, int timeout_ms, gdri_mpi_say *say,
		    gdri_mpi_waited *waited)
{
	struct mpi_boot *b = calloc(1, sizeof(*b));
	MPI_Comm c;
	int rc;

	if (!b)
		return -GDR_ENOMEM;
	b->say = say;
	b->waited = waited;
	mpi_fill(b);
	memcpy(&c, comm, sizeof(c));
	rc = mpi_is_usable(b) ? mpi_describe(b, c) : -GDR_ESTATE;
	if (!rc)
		rc = duplicate_quietly(b, c, timeout_ms);
	if (rc == -GDR_ETIMEOUT)
		return rc; /* MPI will still write to b->comm */
	if (rc) {
		free(b);
		return rc;
	}
	mpi_say(b, SAY_INFO, "bootstrap: PE %d of %d on %s, by MPI communicator", b->pub.pe, b->pub.n_pes,
		b->pub.hostname);
	*out = &b->pub;
	return 0;
}
