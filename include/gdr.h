/* SPDX-License-Identifier: BSD-3-Clause */
/* The one header of gdr: host API, kernel launch, device API. */
#ifndef GDR_H
#define GDR_H

#include <gdr/coll.h>
#include <gdr/ctx.h>
#include <gdr/device.h>
#include <gdr/host.h>
#include <gdr/launch.h>
#include <gdr/local.h>
#include <gdr/simt.h>
#include <gdr/stream.h>
#include <gdr/team.h>

#endif
