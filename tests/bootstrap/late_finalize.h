/* SPDX-License-Identifier: BSD-3-Clause */
/* late_lib.c: a library whose destructor finalizes gdr, where it was asked to. */
#ifndef TESTS_BOOTSTRAP_LATE_FINALIZE_H
#define TESTS_BOOTSTRAP_LATE_FINALIZE_H

__attribute__((visibility("default"))) void late_finalize_in_library(void);

#endif
