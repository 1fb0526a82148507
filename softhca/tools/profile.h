/* SPDX-License-Identifier: BSD-3-Clause */
/* Which device is emulated: SOFTHCA_DEVICE=[PROFILE][,NAME[=VALUE]...]. A profile is a device that exists;
 * the names are the rows of device_caps.def, each a field here. */
#ifndef SOFTHCA_PROFILE_H
#define SOFTHCA_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_device {
	uint32_t part;	   /* vendor_part_id */
	uint64_t firmware; /* as QUERY_DEVICE gives it */
#define CAP(field, name, values, def, help) uint32_t field;
#include "softhca/tools/device_caps.def"
#undef CAP
};

/* Reads text; "": a ConnectX-7. False: what cannot be used, and what it may be, is in err. */
bool hca_device_parse(const char *text, struct hca_device *out, char *err, size_t n);

/* For --help: a line for each name. */
void hca_device_help(void);

#endif
