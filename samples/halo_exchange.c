/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat in a plate: Jacobi iteration on a 2-D grid that is divided among the
 * PEs, with the ghost cells exchanged by device code.
 *
 *	mpirun -n 4 ./halo_exchange [-n cells] [-i iterations] [-o picture.png] [-q]
 *
 * In each iteration one block of threads computes the cells along the four
 * sides, puts them into the neighbours' ghost cells and signals; all blocks
 * compute the interior meanwhile; then the first block waits for the
 * neighbours' signals.
 *
 * Two fields alternate, so no more is needed against a neighbour that runs
 * ahead: before it writes ghost cells of field f again, it has had this PE's
 * signal of the iteration that read them, for block 0 alone reads ghost cells
 * and it signals afterwards. In the same way a source of a put is written
 * again only after the neighbour's next signal, which it sends after the put
 * arrived. */
#include "sample.h"

#include <getopt.h>
#include <unistd.h>

#include "halo_field.h"
#include "halo_picture.h"

enum { UP, DOWN, LEFT, RIGHT, SIDES };

/* Lies in device memory; the pointers are symmetric. */
struct halo {
	float *field[2];   /* rows of `pitch` cells, one ghost cell around */
	float *fixed;	   /* as a field: kept value or HALO_FREE */
	float *out[2];	   /* [LEFT - LEFT], [RIGHT - LEFT]: columns packed for sending */
	float *in[2];	   /* columns received; two fields of them, `column` cells apart */
	uint64_t *arrived; /* [SIDES]: iteration whose ghost cells are here */
	int *status;
	int pitch, column;
	int ny, nx;
	int neighbour[SIDES]; /* PE or -1 */
	int neighbour_ny;     /* rows of the one above: where its lower ghost row is */
	uint64_t iteration;   /* 0, 1, ...: reads field[iteration & 1], writes the other */
};

GDR_DEVICE float halo_cell(const struct halo *h, int row, int col)
{
	const float *old = h->field[h->iteration & 1];
	int at = row * h->pitch + col;

	if (h->fixed[at] != HALO_FREE)
		return h->fixed[at];
	return 0.25f * (old[at - h->pitch] + old[at + h->pitch] + old[at - 1] + old[at + 1]);
}

/* Block 0: the outermost cells, columns also packed. */
GDR_DEVICE void halo_compute_sides(const struct halo *h)
{
	float *now = h->field[(h->iteration + 1) & 1];
	int packed = (int)((h->iteration + 1) & 1) * h->column;

	for (int c = 1 + (int)gdr_thread_id(); c <= h->nx; c += (int)gdr_block_size()) {
		now[h->pitch + c] = halo_cell(h, 1, c);
		now[h->ny * h->pitch + c] = halo_cell(h, h->ny, c);
	}
	for (int r = 1 + (int)gdr_thread_id(); r <= h->ny; r += (int)gdr_block_size()) {
		float left = halo_cell(h, r, 1), right = halo_cell(h, r, h->nx);

		h->out[0][packed + r - 1] = left;
		h->out[1][packed + r - 1] = right;
		if (r > 1 && r < h->ny) { /* corners were written with the rows */
			now[r * h->pitch + 1] = left;
			now[r * h->pitch + h->nx] = right;
		}
	}
}

GDR_DEVICE int halo_put(const struct halo *h, int to, int from_side, float *dst, const float *src,
			int cells)
{
	if (h->neighbour[to] < 0)
		return 0;
	return gdr_put_signal_nbi_block(dst, src, (size_t)cells * sizeof(float),
					h->arrived + from_side, h->iteration + 1, GDR_SIGNAL_SET,
					h->neighbour[to]);
}

/* Block 0: every thread makes the same calls. */
GDR_DEVICE int halo_send_sides(const struct halo *h)
{
	float *now = h->field[(h->iteration + 1) & 1];
	int packed = (int)((h->iteration + 1) & 1) * h->column;
	int ret[SIDES];

	ret[UP] = halo_put(h, UP, DOWN, now + (h->neighbour_ny + 1) * h->pitch + 1,
			   now + h->pitch + 1, h->nx);
	ret[DOWN] = halo_put(h, DOWN, UP, now + 1, now + h->ny * h->pitch + 1, h->nx);
	ret[LEFT] = halo_put(h, LEFT, RIGHT, h->in[1] + packed, h->out[0] + packed, h->ny);
	ret[RIGHT] = halo_put(h, RIGHT, LEFT, h->in[0] + packed, h->out[1] + packed, h->ny);
	for (int s = 0; s < SIDES; s++)
		if (ret[s])
			return ret[s];
	return 0;
}

/* All blocks: what needs no ghost cells. */
GDR_DEVICE void halo_compute_interior(const struct halo *h)
{
	float *now = h->field[(h->iteration + 1) & 1];

	for (int r = 2 + (int)gdr_block_id(); r < h->ny; r += (int)gdr_grid_size())
		for (int c = 2 + (int)gdr_thread_id(); c < h->nx; c += (int)gdr_block_size())
			now[r * h->pitch + c] = halo_cell(h, r, c);
}

/* Thread 0 of block 0 waits for all sides. */
GDR_DEVICE int halo_wait_sides(const struct halo *h)
{
	for (int s = 0; s < SIDES; s++) {
		int ret = h->neighbour[s] < 0
				  ? 0
				  : gdr_signal_wait_until_from(h->arrived + s, GDR_CMP_GE,
							       h->iteration + 1, h->neighbour[s]);

		if (ret)
			return ret;
	}
	return 0;
}

GDR_DEVICE void halo_unpack_columns(const struct halo *h)
{
	float *now = h->field[(h->iteration + 1) & 1];
	int packed = (int)((h->iteration + 1) & 1) * h->column;

	for (int r = 1 + (int)gdr_thread_id(); r <= h->ny; r += (int)gdr_block_size()) {
		if (h->neighbour[LEFT] >= 0)
			now[r * h->pitch] = h->in[0][packed + r - 1];
		if (h->neighbour[RIGHT] >= 0)
			now[r * h->pitch + h->nx + 1] = h->in[1][packed + r - 1];
	}
}

/* One iteration. Once a status is set, the rest of the launches do nothing. */
GDR_KERNEL(halo_iterate, struct halo, h)
{
	int *seen = (int *)gdr_shared(), ret = 0;

	if (gdr_block_id() == 0) {
		if (gdr_thread_id() == 0)
			*seen = *h.status;
		gdr_sync_block();
		if (*seen)
			return;
		halo_compute_sides(&h);
		gdr_sync_block();
		ret = halo_send_sides(&h);
	}
	halo_compute_interior(&h);
	if (gdr_block_id() != 0)
		return;
	if (gdr_thread_id() == 0) {
		if (!ret)
			ret = halo_wait_sides(&h);
		if (!ret && h.iteration % 64 == 63)
			ret = gdr_quiet(); /* errors of the puts themselves come out here */
		*h.status = *seen = ret;
	}
	gdr_sync_block();
	if (!*seen)
		halo_unpack_columns(&h);
}

struct options {
	int n, iterations, quiet;
	const char *path;
};

static int usage(FILE *f, const char *name, int status)
{
	fprintf(f,
		"usage: %s [-n cells] [-i iterations] [-o picture.png] [-q]\n"
		"  -n  cells along an edge of the plate, 4..16384 (512)\n"
		"  -i  iterations, 1..100000000 (2000)\n"
		"  -o  where PE 0 writes the picture (halo.png); \"\": nowhere\n"
		"  -q  no progress line\n",
		name);
	return status;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	long n = 512, iterations = 2000;
	const struct sample_option cells = {"-n", NULL, 4, 16384, &n};
	const struct sample_option rounds = {"-i", NULL, 1, 100000000, &iterations};
	int c, bad = 0;

	o->quiet = 0;
	o->path = "halo.png";
	while ((c = getopt(argc, argv, "n:i:o:q")) != -1)
		switch (c) {
		case 'n':
			bad |= sample_option_value(&cells, optarg);
			break;
		case 'i':
			bad |= sample_option_value(&rounds, optarg);
			break;
		case 'o':
			o->path = optarg;
			break;
		case 'q':
			o->quiet = 1;
			break;
		default:
			bad = 1; /* getopt has named it */
		}
	o->n = (int)n;
	o->iterations = (int)iterations;
	return !bad && optind < argc ? sample_option_unknown(argv[optind]) : bad;
}

/* Fills the fields with the start state and the kept cells. */
static int set_start(const struct halo *h, const struct halo_part *p, int n, size_t bytes)
{
	float *start = (float *)calloc(1, bytes), *fixed = (float *)calloc(1, bytes);
	int ret = start && fixed ? 0 : -GDR_ENOMEM;

	for (int r = 0; !ret && r < p->ny; r++)
		for (int c = 0; c < p->nx; c++) {
			int at = (r + 1) * h->pitch + c + 1;

			start[at] = halo_start(p->row0 + r, p->col0 + c, n);
			fixed[at] = halo_fixed(p->row0 + r, p->col0 + c, n);
		}
	/* Ghost cells of the start are computed, not exchanged. */
	for (int r = 0; !ret && r < p->ny + 2; r++)
		for (int c = 0; c < p->nx + 2; c++) {
			int row = p->row0 + r - 1, col = p->col0 + c - 1;

			if (row >= 0 && row < n && col >= 0 && col < n)
				start[r * h->pitch + c] = halo_start(row, col, n);
		}
	if (!ret)
		ret = gdr_memcpy(h->field[0], start, bytes);
	if (!ret)
		ret = gdr_memcpy(h->fixed, fixed, bytes);
	free(start);
	free(fixed);
	return ret;
}

/* Allocates and fills everything; on failure what there is goes with gdr_finalize. */
static int set_up(struct halo *h, const struct halo_grid *g, size_t *bytes)
{
	int pe = gdr_host_my_pe();
	struct halo_part p = halo_part_of(g, pe);
	int ny = (g->n + g->rows - 1) / g->rows, nx = (g->n + g->cols - 1) / g->cols;

	if (g->n / g->rows < 2 || g->n / g->cols < 2) {
		fprintf(stderr, "%d cells are too few for %d x %d PEs: each needs 2 x 2\n", g->n,
			g->rows, g->cols);
		return -GDR_EINVAL;
	}
	memset(h, 0, sizeof(*h));
	h->pitch = nx + 2;
	h->column = ny;
	h->ny = p.ny;
	h->nx = p.nx;
	h->neighbour[UP] = p.row > 0 ? pe - g->cols : -1;
	h->neighbour[DOWN] = p.row + 1 < g->rows ? pe + g->cols : -1;
	h->neighbour[LEFT] = p.col > 0 ? pe - 1 : -1;
	h->neighbour[RIGHT] = p.col + 1 < g->cols ? pe + 1 : -1;
	if (p.row > 0)
		h->neighbour_ny = halo_part_of(g, pe - g->cols).ny;
	*bytes = (size_t)h->pitch * (size_t)(ny + 2) * sizeof(float);
	for (int i = 0; i < 2; i++) {
		h->field[i] = (float *)gdr_calloc(1, *bytes);
		h->out[i] = (float *)gdr_calloc((size_t)ny * 2, sizeof(float));
		h->in[i] = (float *)gdr_calloc((size_t)ny * 2, sizeof(float));
		if (!h->field[i] || !h->out[i] || !h->in[i])
			return -GDR_ENOMEM;
	}
	h->fixed = (float *)gdr_malloc(*bytes);
	h->arrived = (uint64_t *)gdr_calloc(SIDES, sizeof(uint64_t));
	h->status = (int *)gdr_calloc(1, sizeof(int));
	if (!h->fixed || !h->arrived || !h->status)
		return -GDR_ENOMEM;
	return set_start(h, &p, g->n, *bytes);
}

static int iterate(struct halo *h, const struct options *o)
{
	int cuda = sample_is_cuda(), ret = 0, status = 0;
	int show = gdr_host_my_pe() == 0 && !o->quiet && isatty(STDOUT_FILENO);

	for (int k = 0; !ret && k < o->iterations; k++) {
		h->iteration = (uint64_t)k;
		ret = gdr_launch(halo_iterate, cuda ? 64 : 2, cuda ? 256 : 32, sizeof(int), NULL,
				 h);
		if (ret || ((k + 1) % 50 && k + 1 < o->iterations))
			continue;
		ret = gdr_stream_sync(NULL);
		if (!ret)
			ret = gdr_memcpy(&status, h->status, sizeof(status));
		if (!ret)
			ret = status;
		if (show)
			printf("\riteration %d of %d%s", k + 1, o->iterations,
			       k + 1 == o->iterations ? "\n" : "");
		fflush(stdout);
	}
	return ret;
}

/* PE 0 fetches every part and puts the plate together. */
static int gather(const struct halo *h, const struct halo_grid *g, const struct options *o,
		  size_t bytes, float *plate)
{
	float *part = (float *)malloc(bytes);
	int ret = part ? gdr_buffer_register(part, bytes) : -GDR_ENOMEM;

	for (int pe = 0; !ret && pe < g->rows * g->cols; pe++) {
		struct halo_part p = halo_part_of(g, pe);

		ret = gdr_host_get(part, h->field[o->iterations & 1], bytes, pe);
		for (int r = 0; !ret && r < p.ny; r++)
			memcpy(plate + (size_t)(p.row0 + r) * (size_t)g->n + (size_t)p.col0,
			       part + (size_t)(r + 1) * (size_t)h->pitch + 1,
			       (size_t)p.nx * sizeof(float));
	}
	if (part)
		gdr_buffer_unregister(part);
	free(part);
	return ret;
}

/* Every cell, bit for bit: both solutions add in the same order. */
static int check(const float *plate, const struct options *o)
{
	size_t cells = (size_t)o->n * (size_t)o->n, wrong = 0, first = 0;
	float *serial = (float *)malloc(cells * sizeof(float));

	if (!serial || halo_serial(serial, o->n, o->iterations)) {
		free(serial);
		fprintf(stderr, "no memory for the serial solution\n");
		return -1;
	}
	for (size_t i = cells; i-- > 0;)
		if (memcmp(plate + i, serial + i, sizeof(float))) {
			wrong++;
			first = i;
		}
	if (wrong)
		fprintf(stderr,
			"WRONG: %zu of %zu cells, first at row %zu column %zu: %g, not %g\n", wrong,
			cells, first / (size_t)o->n, first % (size_t)o->n, (double)plate[first],
			(double)serial[first]);
	else
		printf("all %zu cells equal the serial solution\n", cells);
	free(serial);
	return wrong ? -1 : 0;
}

/* From init to finalize. On PE 0 `plate` receives the result. */
static int solve(const struct options *o, float *plate)
{
	struct halo h;
	struct halo_grid g = halo_divide(o->n, gdr_host_n_pes());
	size_t bytes;
	double seconds;
	int root = gdr_host_my_pe() == 0, ret;

	if (root) {
		sample_print_setting();
		printf("%d x %d cells on %d x %d PEs, %d iterations\n", o->n, o->n, g.rows, g.cols,
		       o->iterations);
		fflush(stdout);
	}
	ret = set_up(&h, &g, &bytes);
	if (!ret)
		ret = gdr_barrier_all();
	if (ret)
		return sample_error("set-up", ret);
	seconds = sample_seconds();
	ret = iterate(&h, o);
	if (ret)
		return sample_error("iteration", ret);
	seconds = sample_seconds() - seconds;
	ret = gdr_barrier_all();
	if (!ret && root)
		ret = gather(&h, &g, o, bytes, plate);
	if (!ret)
		ret = gdr_barrier_all(); /* PE 0 has read everything */
	if (ret)
		return sample_error("gathering the result", ret);
	if (root)
		printf("%.3f s, %.1f us an iteration\n", seconds,
		       seconds * 1e6 / (double)o->iterations);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o;
	float *plate = NULL;
	int ret, root;

	if (sample_asks_help(argc, argv))
		return usage(stdout, argv[0], 0);
	if (parse_options(argc, argv, &o))
		return usage(stderr, argv[0], 2);
	ret = gdr_init();
	if (ret) {
		fprintf(stderr, "gdr_init: %s\n", gdr_strerror(ret));
		return 1;
	}
	root = gdr_host_my_pe() == 0;
	if (root)
		plate = (float *)malloc((size_t)o.n * (size_t)o.n * sizeof(float));
	ret = root && !plate ? -GDR_ENOMEM : solve(&o, plate);
	if (gdr_finalize() && !ret) {
		fprintf(stderr, "gdr_finalize failed\n");
		ret = -1;
	}
	if (!ret && root)
		ret = check(plate, &o);
	if (!ret && root && *o.path) {
		ret = halo_write_picture(o.path, plate, o.n);
		if (!ret)
			printf("picture: %s\n", o.path);
	}
	free(plate);
	return ret ? 1 : 0;
}
