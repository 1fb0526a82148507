/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes an ioctl apart and finds the method; rules as in the kernel's
 * drivers/infiniband/core/uverbs_ioctl.c: an unknown method, or an unknown
 * attribute that the caller marks mandatory, is EPROTONOSUPPORT; a missing one
 * is EINVAL. */
#include "softhca/driver/uverbs.h"

#include <errno.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "softhca/tools/log.h"

/* Attribute ids are 0.. for the core and 0x1000.. for the driver. */
#define DRIVER	   (1u << UVERBS_ID_NS_SHIFT)
#define MAX_ATTRS  32
#define A(id)	   (1u << (id))
#define D(id)	   (1u << ((id) & ~(unsigned)UVERBS_ID_NS_MASK))
#define UHW	   (D(UVERBS_ATTR_UHW_IN) | D(UVERBS_ATTR_UHW_OUT))
#define BITS(n)	   ((1u << (n)) - 1)

/* A method whose attributes are all the core's, or all the driver's: n that are understood, of which the first
 * `need` have to be there. */
#define CORE(object, name, fn, n, need)                                                            \
	{UVERBS_OBJECT_##object, UVERBS_METHOD_##name, fn, BITS(n), 0, BITS(need), 0}
#define MLX5(object, name, fn, n, need)                                                            \
	{MLX5_IB_OBJECT_##object, MLX5_IB_METHOD_##name, fn, 0, BITS(n), 0, BITS(need)}

/* Attribute 0 of these methods names what is to be destroyed. */
static int um_destroy(struct uverbs_call *call)
{
	static const struct {
		uint16_t object, attr;
		enum obj_type type;
	} kinds[] = {
		{UVERBS_OBJECT_PD, UVERBS_ATTR_DESTROY_PD_HANDLE, OBJ_PD},
		{UVERBS_OBJECT_AH, UVERBS_ATTR_DESTROY_AH_HANDLE, OBJ_AH},
		{UVERBS_OBJECT_MR, UVERBS_ATTR_DESTROY_MR_HANDLE, OBJ_MR},
		{UVERBS_OBJECT_MW, UVERBS_ATTR_DESTROY_MW_HANDLE, OBJ_MW},
		{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, OBJ_UMEM},
		{MLX5_IB_OBJECT_UAR, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, OBJ_UAR},
	};
	struct ctl_obj *obj = NULL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].object == call->hdr->object_id)
			obj = ua_obj(call, kinds[i].attr, kinds[i].type);
	return obj ? obj_destroy(obj) : ENOENT;
}

static const struct method {
	uint16_t object, method;
	uverbs_method *fn;
	uint32_t core, driver;		 /* attributes that are understood */
	uint32_t need_core, need_driver; /* and those that have to be there */
} methods[] = {
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, um_invoke_write, BITS(3), UHW,
	 A(UVERBS_ATTR_WRITE_CMD), 0},
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, um_get_context, BITS(2), UHW, 0, UHW},
	CORE(DEVICE, QUERY_PORT, um_query_port, 2, 2),
	CORE(DEVICE, QUERY_GID_TABLE, um_query_gid_table, 4, 4),
	CORE(DEVICE, QUERY_GID_ENTRY, um_query_gid_entry, 4, 4),
	CORE(PD, PD_DESTROY, um_destroy, 1, 1),
	{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, um_pd_query, 0, BITS(2), 0, BITS(2)},
	{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, um_cq_create, BITS(8), UHW,
	 A(UVERBS_ATTR_CREATE_CQ_HANDLE) | A(UVERBS_ATTR_CREATE_CQ_CQE), UHW},
	CORE(CQ, CQ_DESTROY, um_cq_destroy, 2, 2),
	{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, um_qp_create, BITS(15), UHW,
	 A(UVERBS_ATTR_CREATE_QP_HANDLE) | A(UVERBS_ATTR_CREATE_QP_TYPE) |
		 A(UVERBS_ATTR_CREATE_QP_CAP),
	 UHW},
	CORE(QP, QP_DESTROY, um_qp_destroy, 2, 2),
	CORE(SRQ, SRQ_DESTROY, um_srq_destroy, 2, 2),
	CORE(AH, AH_DESTROY, um_destroy, 1, 1),
	{UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, um_dm_alloc, BITS(3), BITS(3), BITS(3), 0},
	CORE(DM, DM_FREE, um_dm_free, 1, 1),
	{UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY, um_dm_query, 0, BITS(4), 0, BITS(4)},
	{UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_MAP_OP_ADDR, um_dm_map_op, 0, BITS(4), 0, BITS(4)},
	CORE(MR, DM_MR_REG, um_mr_reg_dm, 8, 8),
	CORE(MR, MR_DESTROY, um_destroy, 1, 1),
	CORE(MW, MW_DESTROY, um_destroy, 1, 1),
	CORE(MR, QUERY_MR, um_mr_query, 5, 1),
	CORE(MR, ADVISE_MR, um_mr_advise, 4, 4),
	CORE(MR, REG_DMABUF_MR, um_mr_reg_dmabuf, 9, 9),
	CORE(ASYNC_EVENT, ASYNC_EVENT_ALLOC, um_async_alloc, 1, 1),
	MLX5(DEVX, DEVX_OTHER, um_devx_other, 2, 2),
	MLX5(DEVX, DEVX_QUERY_UAR, um_devx_query_uar, 2, 2),
	MLX5(DEVX, DEVX_QUERY_EQN, um_devx_query_eqn, 2, 2),
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, um_devx_subscribe, 0, BITS(5), 0,
	 D(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE) | D(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST)},
	MLX5(DEVX_ASYNC_EVENT_FD, DEVX_ASYNC_EVENT_FD_ALLOC, um_devx_event_fd, 2, 2),
	MLX5(DEVX_OBJ, DEVX_OBJ_CREATE, um_devx_obj_create, 3, 3),
	MLX5(DEVX_OBJ, DEVX_OBJ_DESTROY, um_devx_obj_destroy, 1, 1),
	MLX5(DEVX_OBJ, DEVX_OBJ_MODIFY, um_devx_obj_modify, 3, 3),
	MLX5(DEVX_OBJ, DEVX_OBJ_QUERY, um_devx_obj_query, 3, 3),
	MLX5(DEVX_UMEM, DEVX_UMEM_REG, um_umem_reg, 7, 5),
	MLX5(DEVX_UMEM, DEVX_UMEM_DEREG, um_destroy, 1, 1),
	MLX5(UAR, UAR_OBJ_ALLOC, um_uar_alloc, 5, 5),
	MLX5(UAR, UAR_OBJ_DESTROY, um_destroy, 1, 1),
};

/* ---- attributes ---- */

static struct ib_uverbs_attr *ua_find(struct uverbs_call *call, unsigned id)
{
	for (unsigned i = 0; i < call->hdr->num_attrs; i++)
		if (call->hdr->attrs[i].attr_id == id)
			return &call->hdr->attrs[i];
	return NULL;
}

bool ua_has(struct uverbs_call *call, unsigned id)
{
	return ua_find(call, id) != NULL;
}

/* Up to eight bytes travel in the attribute itself. */
static const void *in_data(const struct ib_uverbs_attr *a)
{
	return a->len <= sizeof(a->data) ? (const void *)&a->data
					 : (const void *)(uintptr_t)a->data;
}

bool ua_in(struct uverbs_call *call, unsigned id, void *dst, size_t size)
{
	struct ib_uverbs_attr *a = ua_find(call, id);
	size_t n;

	memset(dst, 0, size);
	if (!a || !in_data(a))
		return false;
	n = a->len < size ? a->len : size;
	memcpy(dst, in_data(a), n);
	return true;
}

uint64_t ua_in_u64(struct uverbs_call *call, unsigned id)
{
	struct ib_uverbs_attr *a = ua_find(call, id);
	uint64_t v = 0;

	if (!a)
		return 0;
	/* Handles and fds carry no length. */
	if (!a->len || a->len > sizeof(v))
		return a->len ? 0 : a->data;
	memcpy(&v, &a->data, a->len);
	return v;
}

size_t ua_len(struct uverbs_call *call, unsigned id)
{
	struct ib_uverbs_attr *a = ua_find(call, id);

	return a ? a->len : 0;
}

int ua_out(struct uverbs_call *call, unsigned id, const void *src, size_t size)
{
	struct ib_uverbs_attr *a = ua_find(call, id);
	uint8_t *dst;
	size_t n;

	if (!a || !a->len)
		return 0;
	dst = (uint8_t *)(uintptr_t)a->data;
	if (!dst)
		return EFAULT;
	n = a->len < size ? a->len : size;
	memcpy(dst, src, n);
	memset(dst + n, 0, a->len - n);
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return 0;
}

void ua_out_handle(struct uverbs_call *call, unsigned id, uint64_t value)
{
	struct ib_uverbs_attr *a = ua_find(call, id);

	if (a)
		a->data = value;
}

void *ua_obj(struct uverbs_call *call, unsigned id, enum obj_type type)
{
	struct ib_uverbs_attr *a = ua_find(call, id);

	return a ? obj_get(call->ctx, a->data, type) : NULL;
}

/* ---- dispatch ---- */

static int check_attrs(const struct method *m, const struct ib_uverbs_ioctl_hdr *hdr)
{
	uint32_t core = 0, driver = 0;

	for (unsigned i = 0; i < hdr->num_attrs; i++) {
		const struct ib_uverbs_attr *a = &hdr->attrs[i];
		unsigned n = a->attr_id & ~(unsigned)UVERBS_ID_NS_MASK;
		uint32_t bit = n < MAX_ATTRS ? 1u << n : 0;
		bool is_core = (a->attr_id & UVERBS_ID_NS_MASK) == 0;
		bool is_driver = (a->attr_id & UVERBS_ID_NS_MASK) == DRIVER;

		if (a->attr_data.reserved)
			return EINVAL;
		if ((is_core && (m->core & bit)) || (is_driver && (m->driver & bit))) {
			if (((is_core ? core : driver) & bit) != 0)
				return EINVAL; /* twice */
			if (is_core)
				core |= bit;
			else
				driver |= bit;
		} else if (a->flags & UVERBS_ATTR_F_MANDATORY) {
			return EPROTONOSUPPORT;
		}
	}
	if ((m->need_core & ~core) || (m->need_driver & ~driver))
		return EINVAL;
	return 0;
}

static const struct method *method_find(const struct ib_uverbs_ioctl_hdr *hdr)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].object == hdr->object_id && methods[i].method == hdr->method_id)
			return &methods[i];
	return NULL;
}

static int uverbs_run(struct uverbs_call *call)
{
	const struct method *m = method_find(call->hdr);
	int rc;

	if (!m)
		return EPROTONOSUPPORT;
	/* Only the probe of libibverbs comes before GET_CONTEXT. */
	if (!call->ctx->ready && m->fn != um_get_context && m->fn != um_invoke_write)
		return EINVAL;
	rc = check_attrs(m, call->hdr);
	return rc ? rc : m->fn(call);
}

static int uverbs_check(const struct ib_uverbs_ioctl_hdr *hdr)
{
	if (!hdr)
		return EFAULT;
	if (hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]) ||
	    hdr->length > 4096)
		return EINVAL;
	if (hdr->reserved1 || hdr->reserved2)
		return EPROTONOSUPPORT;
	return 0;
}

/* These change nothing in the process's memory, where other threads may have been at work at the fork. */
static bool child_may(struct uverbs_call *call, const struct method *m)
{
	const uint64_t query = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE;

	return m->fn == um_dm_alloc || m->fn == um_dm_free ||
	       (m->fn == um_invoke_write && ua_in_u64(call, UVERBS_ATTR_WRITE_CMD) == query);
}

int uverbs_ioctl_child(int fd, dev_t dev, ino_t ino, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct uverbs_call call = {.fd = fd, .hdr = hdr, .child = true, .ctx = device_find(dev, ino)};
	const struct method *m = uverbs_check(hdr) ? NULL : method_find(hdr);
	int rc;

	if (!m || !call.ctx || !call.ctx->ready || !child_may(&call, m))
		return EIO;
	rc = check_attrs(m, hdr);
	return rc ? rc : m->fn(&call);
}

int uverbs_ioctl(int fd, dev_t dev, ino_t ino, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct uverbs_call call = {.fd = fd, .hdr = hdr};
	int rc = uverbs_check(hdr);

	if (rc)
		return rc;
	um_ask_gpu(&call);
	hca_lock();
	call.ctx = device_find(dev, ino);
	rc = call.ctx ? uverbs_run(&call) : EIO;
	hca_unlock();
	dma_show_not(&call.gpu);
	if (rc == EMFILE) /* which libibverbs does not pass on */
		hca_warn("no descriptor for the device: %s", limits_text(rc).s);
	hca_debug(1, "object 0x%x method 0x%x attributes %u: %s", hdr->object_id, hdr->method_id,
		  hdr->num_attrs, rc ? strerror(rc) : "ok");
	return rc;
}
