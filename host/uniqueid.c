// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/core/log.h"
#include "runtime/path/uniqueid.h"

int gdr_get_uniqueid(gdr_uniqueid_t *id)
{
	if (!id)
		return gdri_fail(-GDR_EINVAL, "gdr_get_uniqueid: id is NULL");
	return gdri_uniqueid_create(id);
}
