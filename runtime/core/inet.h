/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of this machine's network interfaces, and which of them others are most likely to reach. */
#ifndef GDRI_INET_H
#define GDRI_INET_H

#include <stdbool.h>
#include <stdint.h>

struct ifaddrs;
struct sockaddr;

/* PEs send it to each other: without padding. */
struct gdri_inet {
	uint8_t family;	  /* 4 or 6; 0: none */
	uint8_t prefix;	  /* bits that the addresses of its network share */
	uint8_t rank;	  /* of its interface, the higher the better */
	uint8_t unused;
	uint32_t mbits;	  /* a second; 0: the interface does not say */
	uint8_t addr[16]; /* network order, an IPv4 address in the first four */
};

/* Family and address alone; family 0: it is of another kind. */
struct gdri_inet gdri_inet_of(const struct sockaddr *a);
/* One address. */
bool gdri_inet_is(const struct gdri_inet *a, const struct gdri_inet *b);
/* Two of one network, as a knows that. */
bool gdri_inet_near(const struct gdri_inet *a, const struct gdri_inet *b);

/* 0: it cannot be used. IPv4 before IPv6; bridges, containers and what has no carrier after others, loopback last. */
int gdri_inet_rank(const struct ifaddrs *i);
/* Addresses of interfaces that are up, the highest rank first, else in the kernel's order; of one interface, whose name
 * is given, or of all (""). How many, `room` at most, or -errno. */
int gdri_inet_list(const char *interface, struct gdri_inet *out, int room);
/* From which address the kernel sends to this one; false: it knows no way there. Nothing is sent. */
bool gdri_inet_route(const struct gdri_inet *to, struct gdri_inet *from);

#endif
