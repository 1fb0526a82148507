/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels in C++ that a program in C loads, and the C++ runtime with them. */
#include "tests/hostdev/exceptions.hpp"

extern "C" int exceptions_of_module(void)
{
	return exceptions_run();
}
