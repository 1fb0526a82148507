// SPDX-License-Identifier: BSD-3-Clause
/* Firmware commands through mlx5dv DEVX. */

#include <errno.h>
#include <string.h>

#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

bool gdri_nic_obj_try(struct gdri_nic *nic, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		      struct mlx5dv_devx_obj **obj)
{
	memset(out, 0, out_bytes);
	*obj = mlx5dv_devx_obj_create(nic->ctx, in, in_bytes, out, out_bytes);
	return *obj;
}

int gdri_nic_obj_create(struct gdri_nic *nic, const char *what, const void *in, size_t in_bytes,
			void *out, size_t out_bytes, struct mlx5dv_devx_obj **obj)
{
	return gdri_nic_obj_try(nic, in, in_bytes, out, out_bytes, obj)
		       ? 0
		       : gdri_nic_command_failed(nic->name, what, errno, out);
}

int gdri_nic_obj_query(struct gdri_nic *nic, const char *what, struct mlx5dv_devx_obj *obj, const void *in,
		       size_t in_bytes, void *out, size_t out_bytes)
{
	int err;

	memset(out, 0, out_bytes);
	err = mlx5dv_devx_obj_query(obj, in, in_bytes, out, out_bytes);
	return err ? gdri_nic_command_failed(nic->name, what, err, out) : 0;
}

int gdri_nic_obj_modify(struct gdri_nic *nic, const char *what, struct mlx5dv_devx_obj *obj,
			const void *in, size_t in_bytes)
{
	uint8_t out[PRM_MODIFY_QP_OUT_BYTES] = {0};
	int err = mlx5dv_devx_obj_modify(obj, in, in_bytes, out, sizeof(out));

	return err ? gdri_nic_command_failed(nic->name, what, err, out) : 0;
}
