/* SPDX-License-Identifier: BSD-3-Clause */
/* One row for each function that libibverbs and libmlx5 export. What a row says is
 * observed when the program runs, or proved by the named test, which has to call
 * the function. */
#ifndef TEST_SOFTHCA_COVERAGE_H
#define TEST_SOFTHCA_COVERAGE_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* A device with one of each of the common objects. */
struct env {
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* RC, connected to itself */
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct mlx5dv_devx_umem *umem;
	union ibv_gid gid;
	uint8_t *buf;
};

enum { BUF_SIZE = 65536 };

/* 0, the errno of a refusal, or WRONG when an answer is not what it has to be. */
typedef int (*probe_fn)(struct env *e);
enum { WRONG = -1 };

enum row_kind {
	ROW_TEST,   /* works: the named test proves it */
	ROW_LIVE,   /* the probe finds out */
	ROW_NEEDS,  /* works on an object that only the named function makes */
	ROW_BEHIND, /* providers call it for the named verb */
	ROW_OTHER,  /* providers other than libmlx5 call it */
};

struct row {
	const char *name;
	enum row_kind kind;
	const char *of; /* the test, or the other function */
	probe_fn probe;
};

extern const struct row rows_verbs[], rows_inline[], rows_mlx5[]; /* end with no name */

/* The verdict in errno's terms of a function that returns a pointer or an int. */
int failed(void);		     /* errno, which must be set */
int int_result(int rc);		     /* 0, errno, -errno or -1 with errno */

void print_commands(struct env *e); /* the PRM commands */

#endif
