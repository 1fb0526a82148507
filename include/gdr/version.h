/* SPDX-License-Identifier: BSD-3-Clause */
/* Version of the headers, the one place that has it; gdr_version() gives the library's. */
#ifndef GDR_VERSION_H
#define GDR_VERSION_H

#define GDR_VERSION_MAJOR 0
#define GDR_VERSION_MINOR 1
#define GDR_VERSION_PATCH 0
#define GDR_VERSION_STRING GDRI_VERSION_TEXT(GDR_VERSION_MAJOR, GDR_VERSION_MINOR, GDR_VERSION_PATCH)
#define GDRI_VERSION_TEXT(major, minor, patch) GDRI_VERSION_QUOTED(major, minor, patch)
#define GDRI_VERSION_QUOTED(major, minor, patch) #major "." #minor "." #patch

/* Layout of everything that host library, device code and peers share
 * (device/gdr/impl/arch/abi.h). Raised by any change to it; gdr_init refuses
 * device code and peers that differ. */
#define GDR_ABI_VERSION 41

#endif
