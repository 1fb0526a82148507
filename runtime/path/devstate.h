/* SPDX-License-Identifier: BSD-3-Clause */
/* struct gdri_dev: what device code knows of the library. */
#ifndef GDRI_DEVSTATE_H
#define GDRI_DEVSTATE_H

#include <gdr/impl/arch/abi.h>

struct gdri_state;

/* Publishes st->dev to device code, or hides it (NULL). */
void gdri_devstate_publish(struct gdri_dev *dev);

/* Latches a status for gdr_host_status() and the next quiet, unless an earlier one is there. */
void gdri_devstate_latch(struct gdri_state *st, int status);

/* Ends every wait of the PE. */
void gdri_devstate_abort(struct gdri_state *st);

/* Fills the area that peers will read; before any of them is connected. */
void gdri_link_prepare(struct gdri_ctl *ctl, int pe);

/* Logs what the device of the queues, if there is one, has said by itself. The monitor's. */
void gdri_devstate_look(const struct gdri_state *st);

#endif
