/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the precompiled header of the quick profile. */
int main(void)
{
	return 0;
}
