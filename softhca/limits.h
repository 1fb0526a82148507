/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system lets this process have, in words. */
#ifndef SOFTHCA_LIMITS_H
#define SOFTHCA_LIMITS_H

/* As strerror(); a limit of this process with its value and the command that raises it. */
const char *limits_text(int err);

#endif
