/* SPDX-License-Identifier: BSD-3-Clause */
/* Conjugate gradients in one persistent kernel: the host launches it, and hears
 * of it again when the solution is there.
 *
 *	mpirun -n 4 ./cg [-n cells] [-i iterations] [-b blocks]
 *
 * Solves A x = b, where A is the five-point Laplacian of a plate of n x n cells
 * with cold edges, and b is random. The rows of cells are divided among the
 * PEs. In each iteration
 *  - a PE's first block puts the outermost rows of the direction p into the
 *    neighbours' ghost rows, with a signal; all blocks multiply A with the rows
 *    that need none of them; the first block waits for the neighbours' signals,
 *    and multiplies the outermost rows;
 *  - two dot products are summed over the threads of a block, over the blocks,
 *    and by the first block over all PEs.
 * Between these the blocks meet: gdr_grid_sync. So they must run at once: the
 * launch is a collective one.
 *
 * One set of ghost rows is enough: a neighbour puts its next rows behind the
 * second sum, for which this PE gives its share after it has read the ghost
 * rows. In the same way no row is written while its put still reads it: the
 * neighbour gives its share of the first sum when the row has arrived. */
#define GDR_KERNEL_THREADS 512 /* more registers for each */
#include "sample.h"

#include <math.h>

#define TOLERANCE 1e-10 /* of the residual, beside that of x = 0 */

enum { ABOVE, BELOW, SIDES };

/* Lies in device memory; the pointers are symmetric. */
struct cg {
	double *x, *r, *q; /* rows of n cells */
	double *p;	   /* rows of n cells, between two ghost rows */
	double *part;	   /* [blocks]: sums of each block */
	double *sum;	   /* [0]: of this PE, [1]: of all */
	double *residual;  /* [iterations + 1]: |b - A x| behind so many iterations */
	uint64_t *arrived; /* [SIDES]: iteration whose ghost row is here */
	int *done;	   /* iterations */
	int *verdict;	   /* [2]: the first block's status, for all, of even and of odd meetings */
	int *status;	   /* [blocks] */
	int n, ny;	   /* cells of a row; own rows */
	int neighbour[SIDES]; /* PE, or -1 */
	int ghost[SIDES];     /* which row of the neighbour's p the own outermost one becomes */
	int iterations;	      /* at most */
};

GDR_DEVICE int grid_thread(void)
{
	return (int)(gdr_block_id() * gdr_block_size() + gdr_thread_id());
}

GDR_DEVICE int grid_threads(void)
{
	return (int)(gdr_grid_size() * gdr_block_size());
}

/* All threads of the PE; what they stored before, all see behind it. The first block's `status` is for all. */
GDR_DEVICE int meet(const struct cg *c, unsigned *meetings, int status)
{
	int ret;

	++*meetings;
	if (grid_thread() == 0)
		c->verdict[*meetings % 2] = status;
	ret = gdr_grid_sync();
	return ret ? ret : c->verdict[*meetings % 2];
}

/* Every thread brings its part, and the first block what became of its work; *sum becomes the sum of the parts of all
 * threads of all PEs. */
GDR_DEVICE int sum_of_all(const struct cg *c, unsigned *meetings, int status, double part, double *sum)
{
	double *parts = (double *)gdr_shared() + 1;
	unsigned me = gdr_thread_id();
	int ret;

	parts[me] = part;
	for (unsigned half = gdr_block_size() / 2; half; half /= 2) {
		gdr_sync_block();
		if (me < half)
			parts[me] += parts[me + half];
	}
	if (me == 0)
		c->part[gdr_block_id()] = parts[0];
	ret = meet(c, meetings, status);
	if (ret)
		return ret;
	if (gdr_block_id() == 0) {
		if (me == 0) {
			c->sum[0] = 0;
			for (unsigned b = 0; b < gdr_grid_size(); b++)
				c->sum[0] += c->part[b];
		}
		gdr_sync_block();
		ret = gdr_double_sum_reduce_block(GDR_TEAM_WORLD, &c->sum[1], &c->sum[0], 1);
	}
	ret = meet(c, meetings, ret);
	*sum = c->sum[1];
	return ret;
}

/* The first block: hands the outermost rows of p to the neighbours. */
GDR_DEVICE int put_rows(const struct cg *c, uint64_t iteration)
{
	int ret[SIDES] = {0, 0};

	for (int s = 0; s < SIDES; s++)
		if (c->neighbour[s] >= 0)
			ret[s] = gdr_double_put_signal_nbi_block(c->p + c->ghost[s] * c->n,
								 c->p + (s == ABOVE ? 1 : c->ny) * c->n, (size_t)c->n,
								 &c->arrived[SIDES - 1 - s], iteration,
								 GDR_SIGNAL_SET, c->neighbour[s]);
	return ret[ABOVE] ? ret[ABOVE] : ret[BELOW];
}

/* Its thread 0 waits for the neighbours' rows. */
GDR_DEVICE int wait_for_rows(const struct cg *c, uint64_t iteration)
{
	int ret = 0;

	for (int s = 0; s < SIDES && !ret && gdr_thread_id() == 0; s++)
		if (c->neighbour[s] >= 0)
			ret = gdr_signal_wait_until_from(&c->arrived[s], GDR_CMP_GE, iteration, c->neighbour[s]);
	return sample_of_first(ret);
}

/* q = A p from cell `first` to before `end`, in steps; the own part of the dot product of p and q. */
GDR_DEVICE double multiply(const struct cg *c, int first, int end, int step)
{
	double part = 0;

	for (int i = first, n = c->n; i < end; i += step) {
		const double *p = c->p + n + i; /* behind the ghost row */
		double left = i % n ? p[-1] : 0, right = (i + 1) % n ? p[1] : 0;

		c->q[i] = 4 * p[0] - p[-n] - p[n] - left - right;
		part += p[0] * c->q[i];
	}
	return part;
}

/* q = A p for all rows; *part: the own part of the dot product. All of p has been written. */
GDR_DEVICE int multiply_all(const struct cg *c, uint64_t iteration, double *part)
{
	int first = gdr_block_id() == 0, n = c->n, last = (c->ny - 1) * n, me = (int)gdr_thread_id();
	int ret = first ? put_rows(c, iteration) : 0;

	*part = multiply(c, n + grid_thread(), last, grid_threads());
	if (!ret && first)
		ret = wait_for_rows(c, iteration);
	if (ret || !first)
		return ret;
	*part += multiply(c, me, n, (int)gdr_block_size());
	if (last)
		*part += multiply(c, last + me, last + n, (int)gdr_block_size());
	return 0;
}

/* One iteration; *rr is the square of the residual, before and after. */
GDR_DEVICE int iterate(const struct cg *c, unsigned *meetings, int k, double *rr)
{
	double part = 0, pq = 0, next = 0, *p = c->p + c->n;
	int ret = meet(c, meetings, 0);

	if (ret)
		return ret;
	ret = multiply_all(c, (uint64_t)k, &part);
	ret = sum_of_all(c, meetings, ret, part, &pq);
	if (ret)
		return ret;
	part = 0;
	for (int i = grid_thread(); i < c->ny * c->n; i += grid_threads()) {
		c->x[i] += *rr / pq * p[i];
		c->r[i] -= *rr / pq * c->q[i];
		part += c->r[i] * c->r[i];
	}
	ret = sum_of_all(c, meetings, 0, part, &next);
	for (int i = grid_thread(); i < c->ny * c->n && !ret; i += grid_threads())
		p[i] = c->r[i] + next / *rr * p[i];
	*rr = next;
	return ret;
}

/* x = 0, r = p = b at its begin. All threads of all PEs have the same sums, and so end together. */
GDR_KERNEL(solve, struct cg, c)
{
	unsigned meetings = 0;
	double rr = 0, begin, part = 0;
	int k = 0, ret;

	for (int i = grid_thread(); i < c.ny * c.n; i += grid_threads())
		part += c.r[i] * c.r[i];
	ret = sum_of_all(&c, &meetings, 0, part, &rr);
	begin = rr;
	for (;;) {
		if (grid_thread() == 0 && !ret)
			c.residual[k] = sqrt(rr);
		if (ret || k == c.iterations || rr <= TOLERANCE * TOLERANCE * begin)
			break;
		ret = iterate(&c, &meetings, ++k, &rr);
	}
	if (grid_thread() == 0)
		*c.done = k;
	if (gdr_thread_id() == 0)
		c.status[gdr_block_id()] = ret ? ret : gdr_quiet(); /* what became of the puts */
}

/* ---- the serial solution, and the comparison ---- */

static double right_side(int n, int row, int col)
{
	return (double)(sample_mix((uint64_t)row * (uint64_t)n + (uint64_t)col) >> 11) / 9007199254740992.0 - 0.5;
}

static double cell(const double *v, int n, int row, int col)
{
	return row < 0 || row >= n || col < 0 || col >= n ? 0 : v[row * n + col];
}

/* out = A v */
static void serial_multiply(double *out, const double *v, int n)
{
	for (int i = 0; i < n * n; i++)
		out[i] = 4 * v[i] - cell(v, n, i / n - 1, i % n) - cell(v, n, i / n + 1, i % n) -
			 cell(v, n, i / n, i % n - 1) - cell(v, n, i / n, i % n + 1);
}

static double serial_dot(const double *a, const double *b, int cells)
{
	double sum = 0;

	for (int i = 0; i < cells; i++)
		sum += a[i] * b[i];
	return sum;
}

/* x, and room for three vectors more behind it. Returns the number of iterations. */
static int serial_solve(double *x, double *residual, int n, int iterations)
{
	double *r = x + n * n, *p = r + n * n, *q = p + n * n, rr, begin, alpha, next;
	int k = 0;

	for (int i = 0; i < n * n; i++) {
		x[i] = 0;
		r[i] = p[i] = right_side(n, i / n, i % n);
	}
	begin = rr = serial_dot(r, r, n * n);
	residual[0] = sqrt(rr);
	while (k < iterations && rr > TOLERANCE * TOLERANCE * begin) {
		serial_multiply(q, p, n);
		alpha = rr / serial_dot(p, q, n * n);
		for (int i = 0; i < n * n; i++) {
			x[i] += alpha * p[i];
			r[i] -= alpha * q[i];
		}
		next = serial_dot(r, r, n * n);
		for (int i = 0; i < n * n; i++)
			p[i] = r[i] + next / rr * p[i];
		rr = next;
		residual[++k] = sqrt(rr);
	}
	return k;
}

static int differ(const char *what, int at, double is, double should)
{
	fprintf(stderr, "WRONG: %s %d is %.17g, not %.17g\n", what, at, is, should);
	return -1;
}

/* Up to rounding, since sums have another order here. `room`: four vectors. */
static int check(const double *x, const double *residual, int done, int n, int iterations, double *room,
		 double *serial_residual)
{
	int k = serial_solve(room, serial_residual, n, iterations);
	double *product = room + n * n, begin = serial_residual[0], largest = 0, left;

	if (done != k)
		return differ("number of iterations, beside", k, done, k);
	for (int i = 0; i <= k; i++)
		if (!(fabs(residual[i] - serial_residual[i]) <= 1e-9 * serial_residual[i] + 1e-14 * begin))
			return differ("residual", i, residual[i], serial_residual[i]);
	for (int i = 0; i < n * n; i++)
		largest = fmax(largest, fabs(room[i]));
	for (int i = 0; i < n * n; i++)
		if (!(fabs(x[i] - room[i]) <= 1e-10 * largest))
			return differ("cell", i, x[i], room[i]);
	serial_multiply(product, x, n);
	for (int i = 0; i < n * n; i++) {
		left = right_side(n, i / n, i % n) - product[i];
		if (!(fabs(left) <= 1e-14 * begin + residual[k]))
			return differ("residual of cell", i, left, 0);
	}
	return 0;
}

/* ---- host side ---- */

static int first_row(int n, int pe)
{
	return (int)((long)n * pe / gdr_host_n_pes());
}

static int set_up(struct cg *c, size_t blocks)
{
	int me = gdr_host_my_pe(), n = c->n, most = n / gdr_host_n_pes() + 1, row0 = first_row(n, me), ret = 0;
	size_t bytes = (size_t)most * (size_t)n * sizeof(double);
	double *b = (double *)malloc(bytes);

	c->ny = first_row(n, me + 1) - row0;
	c->neighbour[ABOVE] = me - 1;
	c->neighbour[BELOW] = me + 1 < gdr_host_n_pes() ? me + 1 : -1;
	c->ghost[ABOVE] = me ? row0 - first_row(n, me - 1) + 1 : 0;
	c->x = (double *)gdr_calloc(1, bytes);
	c->r = (double *)gdr_malloc(bytes);
	c->q = (double *)gdr_malloc(bytes);
	c->p = (double *)gdr_calloc(1, bytes + 2 * (size_t)n * sizeof(double));
	c->part = (double *)gdr_calloc(blocks, sizeof(double));
	c->sum = (double *)gdr_calloc(2, sizeof(double));
	c->residual = (double *)gdr_calloc((size_t)c->iterations + 1, sizeof(double));
	c->arrived = (uint64_t *)gdr_calloc(SIDES, sizeof(uint64_t));
	c->done = (int *)gdr_calloc(1, sizeof(int));
	c->verdict = (int *)gdr_calloc(2, sizeof(int));
	c->status = (int *)gdr_calloc(blocks, sizeof(int));
	if (!b || !c->x || !c->r || !c->q || !c->p || !c->part || !c->sum || !c->residual || !c->arrived || !c->done ||
	    !c->verdict || !c->status)
		ret = -GDR_ENOMEM;
	bytes = (size_t)c->ny * (size_t)n * sizeof(double);
	for (int i = 0; !ret && i < c->ny * n; i++)
		b[i] = right_side(n, row0 + i / n, i % n);
	if (!ret)
		ret = gdr_memcpy(c->r, b, bytes);
	if (!ret)
		ret = gdr_memcpy(c->p + n, b, bytes);
	free(b);
	return ret ? ret : gdr_barrier_all(); /* the ghost rows are there before anybody puts into them */
}

/* PE 0 fetches every part of x, and checks. */
static int gather(const struct cg *c, int *done)
{
	size_t cells = (size_t)c->n * (size_t)c->n, steps = (size_t)c->iterations + 1;
	double *room = (double *)malloc((5 * cells + 2 * steps) * sizeof(double));
	double *x = room, *residual = room + 5 * cells;
	int ret = room ? gdr_memcpy(done, c->done, sizeof(*done)) : -GDR_ENOMEM;

	if (!ret)
		ret = gdr_memcpy(residual, c->residual, steps * sizeof(double));
	for (int pe = 0; !ret && pe < gdr_host_n_pes(); pe++) {
		int row = first_row(c->n, pe), rows = first_row(c->n, pe + 1) - row;

		ret = gdr_host_get(x + row * c->n, c->x, (size_t)rows * (size_t)c->n * sizeof(double), pe);
	}
	if (!ret)
		ret = check(x, residual, *done, c->n, c->iterations, room + cells, residual + steps);
	if (!ret)
		printf("%d iterations, residual %.3g of %.3g\n", *done, residual[*done], residual[0]);
	free(room);
	return ret;
}

static int run(struct cg *c, unsigned blocks)
{
	unsigned block = sample_is_cuda() ? 512 : 16;
	int root = gdr_host_my_pe() == 0, done = 1, ret = set_up(c, blocks);
	double seconds = sample_seconds();

	if (ret)
		return sample_error("set-up", ret);
	ret = gdr_collective_launch(solve, blocks, block, (block + 1) * sizeof(double), NULL, c);
	if (!ret)
		ret = gdr_stream_sync(NULL);
	if (!ret)
		ret = sample_first_status(c->status, (int)blocks);
	seconds = sample_seconds() - seconds;
	if (!ret)
		ret = gdr_barrier_all();
	if (!ret && root)
		ret = gather(c, &done);
	if (!ret)
		ret = gdr_barrier_all(); /* PE 0 has read everything */
	if (ret)
		return sample_error("solution", ret);
	if (root)
		printf("%.3f s, %.1f us an iteration\nall residuals and all %d cells agree with the serial solution\n",
		       seconds, seconds * 1e6 / (done ? done : 1), c->n * c->n);
	return 0;
}

int main(int argc, char **argv)
{
	long n = 64, iterations = 2000, blocks = 0;
	const struct sample_option options[] = {
		{"-n", "cells along an edge of the plate, at least one row a PE", 1, 4096, &n},
		{"-i", "iterations at most", 0, 1000000, &iterations},
		{"-b", "blocks, which run at once; 0: 32 on GPUs, else 2", 0, 1024, &blocks},
	};
	int ret = sample_options(argc, argv, options, 3);
	struct cg c;

	if (ret)
		return ret - 1;
	if (sample_begin())
		return 1;
	memset(&c, 0, sizeof(c));
	c.n = (int)n;
	c.iterations = (int)iterations;
	blocks = blocks ? blocks : sample_is_cuda() ? 32 : 2;
	if (n < gdr_host_n_pes())
		ret = sample_error("-n: less than a row for each PE", -GDR_EINVAL);
	else
		ret = run(&c, (unsigned)blocks);
	return sample_end(ret);
}
