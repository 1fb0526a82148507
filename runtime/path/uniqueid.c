// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/path/uniqueid.h"

#include "bootstrap/boot.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"

int gdri_uniqueid_create(gdr_uniqueid_t *id)
{
	struct gdri_options opt;
	int ret = gdri_options_read(&opt, NULL);

	if (ret)
		return ret;
	gdri_log_set_level((enum gdri_log_level)opt.log);
	return gdri_boot_uniqueid_create(id->bytes, opt.uid_interface);
}
