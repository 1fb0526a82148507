/* SPDX-License-Identifier: BSD-3-Clause */
/* The one port: addresses and identity. All processes of a host show the same
 * device, so everything derives from the host's address on the fabric. */
#include <string.h>

#include "softhca/driver/control.h"
#include "softhca/faults/faults.h"
#include "softhca/tools/options.h"

bool port_is_ib(void)
{
	return hca_options()->link == HCA_LINK_IB;
}

bool port_is_down(void)
{
	return faults_on && faults_link_down();
}

uint32_t port_mtu(unsigned device)
{
	return hca_options()->mtu ? hca_options()->mtu : dp_mtu(device);
}

uint16_t port_lid(unsigned device)
{
	return port_is_ib() ? (uint16_t)(1 + device) : 0;
}

bool port_gid(unsigned device, unsigned index, uint8_t gid[16])
{
	unsigned n = port_is_ib() ? 1 : dp_gid_count(device);
	struct in6_addr address;
	uint64_t guid;

	memset(gid, 0, 16);
	index -= faults_on && !port_is_ib() && faults_gids_shuffled(); /* then entry 0 is empty */
	if (index >= n)
		return false;
	address = dp_gid(HCA_GIDS * device + index);
	memcpy(gid, &address, 16);
	if (!port_is_ib())
		return true;
	/* InfiniBand: the link-local subnet prefix and the GUID. */
	guid = port_guid(device);
	memset(gid, 0, 8);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	for (int i = 0; i < 8; i++)
		gid[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
	return true;
}

/* EUI-64 of a MAC address: 52:54, the device, the last three bytes of the host's address. */
uint64_t port_guid(unsigned device)
{
	struct in6_addr address = dp_gid(0);
	const uint8_t *a = address.s6_addr;

	return 0x525400fffe000000ull | (uint64_t)device << 40 | (uint64_t)a[13] << 16 | (uint64_t)a[14] << 8 | a[15];
}

void gid_to_mac(const uint8_t gid[16], uint8_t mac[6])
{
	static const uint8_t oui[3] = {0x52, 0x54, 0x00};

	memcpy(mac, oui, 3);
	memcpy(mac + 3, gid + 13, 3);
}

void path_set_gid(struct hca_path *path, const uint8_t gid[16])
{
	memset(&path->dgid, 0, sizeof(path->dgid));
	/* InfiniBand GIDs are no IP addresses: packets stay on this host. */
	if (!port_is_ib())
		memcpy(&path->dgid, gid, 16);
}
