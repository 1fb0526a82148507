/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled only: code for every function of the host device. */
#include "tests/device/every_function.h"
