/* SPDX-License-Identifier: BSD-3-Clause */
/* Version of the headers; gdr_version() gives the library's. */
#ifndef GDR_VERSION_H
#define GDR_VERSION_H

#define GDR_VERSION_MAJOR 0
#define GDR_VERSION_MINOR 1
#define GDR_VERSION_PATCH 0
#define GDR_VERSION_STRING "0.1.0"

/* Layout of everything that host library, device code and peers share
 * (device/gdr/impl/arch/abi.h). Raised by any change to it; gdr_init refuses
 * device code and peers that differ. */
#define GDR_ABI_VERSION 25

#endif
