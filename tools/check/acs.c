// SPDX-License-Identifier: BSD-3-Clause
#include "tools/check/acs.h"

/* PCI Express Base Specification 7.6.3, extended capability header; 7.7.11, access control services. */
#define EXTENDED 0x100
#define ID_ACS	 0x0d
#define CONTROL	 6
#define REDIRECT 0x0c /* of requests, of completions */

static uint32_t acs_word(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

enum acs acs_of(const uint8_t *config, size_t n)
{
	size_t at = EXTENDED;

	if (n < EXTENDED + 4)
		return n > 64 && n <= EXTENDED
			       ? ACS_NONE
			       : ACS_UNSEEN; /* conventional PCI: no extended space */
	for (int i = 0; i < 64 && at >= EXTENDED && at + CONTROL + 2 <= n; i++) {
		uint32_t head = acs_word(config + at);

		if ((head & 0xffff) == ID_ACS)
			return config[at + CONTROL] & REDIRECT ? ACS_REDIRECTS : ACS_OFF;
		at = head >> 20;
	}
	return ACS_NONE;
}
