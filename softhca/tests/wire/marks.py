#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""marks.py CAPTURE SOURCE TRAFFIC_CLASS PORT: every RoCEv2 packet from the address SOURCE has this
traffic class (IPv4: type of service) and this UDP source port: a number; "qpns", drawn from the two QP
numbers of the connection; "label:N", drawn from a flow label; "any", of the range that is meant for
it. Prints how many there were; none is an error. Ports are drawn as Linux does it, in
rdma_flow_label_to_udp_sport() and rdma_calc_flow_label() of its ib_verbs.h."""
import ipaddress
import struct
import sys

from decode import packets, split

FIRST_PORT = 0xc000


def port_of_label(label):
    return FIRST_PORT | ((label & 0x3fff) ^ (label >> 14 & 0x3f))


def port_of_qpns(a, b):
    v = a * b
    v ^= v >> 20
    v ^= v >> 40
    return port_of_label(v & 0xfffff)


def read(path):
    """Source address, traffic class, UDP source port, destination QPN of each packet."""
    for frame in packets(path):
        parts = split(frame)
        if not parts:
            continue
        ip, udp, data = parts
        v6 = ip[0] >> 4 == 6
        source = ipaddress.ip_address(ip[8:24] if v6 else ip[12:16])
        tclass = struct.unpack_from("!H", ip)[0] >> 4 & 0xff if v6 else ip[1]
        yield (source, tclass, struct.unpack_from("!H", udp)[0],
               struct.unpack_from("!I", data, 4)[0] & 0xffffff)


def main():
    path, source, tclass, port = sys.argv[1:5]
    source, tclass = ipaddress.ip_address(source), int(tclass, 0)
    seen = list(read(path))
    mine = [p for p in seen if p[0] == source]
    qpns = {p[3] for p in mine}, {p[3] for p in seen if p[0] != source}
    if port == "qpns":
        if not len(qpns[0]) == len(qpns[1]) == 1:
            print("not one connection:", qpns)
            return 1
        ports = {port_of_qpns(min(qpns[0]), min(qpns[1]))}
    elif port == "any":
        ports = range(FIRST_PORT, 0x10000)
    else:
        ports = {port_of_label(int(port[6:], 0)) if port.startswith("label:") else int(port, 0)}
    for _, c, p, qpn in mine:
        if c != tclass or p not in ports:
            print("to QP 0x%x: traffic class 0x%02x, source port %d; want 0x%02x, %s" %
                  (qpn, c, p, tclass, ports))
            return 1
    print(len(mine))
    return 0 if mine else 1


if __name__ == "__main__":
    sys.exit(main())
