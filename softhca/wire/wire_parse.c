/* SPDX-License-Identifier: BSD-3-Clause */
/* What raw sockets bring: IP datagrams of anybody, taken apart with care. */
#include <string.h>

#include "softhca/engine/dp.h"
#include "softhca/memory/guest.h"

enum { UDP_LEN = 8 };

bool wire_raw_parse_udp(const uint8_t *udp, size_t n, struct packet_addr *a, size_t *off,
			size_t *len)
{
	if (n < UDP_LEN)
		return false;
	*len = get_be16(udp + 4);
	if (*len < UDP_LEN || *len > n)
		return false;
	*len -= UDP_LEN;
	*off = UDP_LEN;
	memcpy(&a->sport, udp, 2);
	memcpy(&a->dport, udp + 2, 2);
	return true;
}

bool wire_raw_parse(const uint8_t *ip, size_t n, struct packet_addr *a, size_t *off, size_t *len)
{
	size_t hl;

	if (n < 20 || ip[0] >> 4 != 4)
		return false;
	hl = (size_t)(ip[0] & 15) * 4;
	/* Options or fragments: no RoCE packet that the ICRC here could match. */
	if (hl != 20 || (get_be16(ip + 6) & 0x3fff) ||
	    !wire_raw_parse_udp(ip + hl, n - hl, a, off, len))
		return false;
	*off += hl;
	memcpy(&a->id, ip + 4, 2);
	memcpy(&a->saddr, ip + 12, 4);
	memcpy(&a->daddr, ip + 16, 4);
	return true;
}
