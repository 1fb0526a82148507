// SPDX-License-Identifier: BSD-3-Clause
/* libcuda.so.1 of a driver that is older than what the library calls. */
int cuDriverGetVersion(int *release);

int __attribute__((visibility("default"))) cuDriverGetVersion(int *release)
{
	*release = 11040;
	return 0;
}
