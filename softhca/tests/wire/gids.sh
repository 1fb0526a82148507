#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gids.sh SOFTHCA WIRE_PEER: the GID table of two hosts (namespaces joined by veth) with IPv4, global
# and link-local IPv6 addresses, data between each kind, and hosts that have no IPv4 at all.
set -u
me=gids
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../tests/launch/lib.sh"
. "$here/lib.sh"
softhca=$1 peer=$2
need_root "it makes network namespaces"
need ip iproute2
need setpriv util-linux
need tcpdump tcpdump
need python3 python3
make_dir gids

trap_all
two_hosts 4300

# What verbs and sysfs say about the entries of host x: index, GID, type, interface.
table() {
	local p=/sys/class/infiniband/mlx5_0/ports/1 i
	on "$x" ibv_devinfo -v | sed -n 's/.*GID\[ *\([0-9]*\)\]:\s*/\1 /p'
	for i in $(seq 0 15); do
		on "$x" cat $p/gids/$i $p/gid_attrs/types/$i $p/gid_attrs/ndevs/$i 2>/dev/null |
			paste -sd ' '
	done
}

# GID and type as ibv_devinfo shows them; then the files, empty entries with a zero GID alone.
table_is() { # GID...
	local g i=0
	for g; do
		echo "$i $g, RoCE v2"
		i=$((i + 1))
	done >"$dir/want"
	for g; do
		python3 -c 'import ipaddress, sys
g = sys.argv[1]
print(ipaddress.ip_address(g).exploded, "RoCE v2 eth0")' "$g"
		i=$((i + 1))
	done >>"$dir/want"
	for i in $(seq $# 15); do
		echo 0000:0000:0000:0000:0000:0000:0000:0000
	done >>"$dir/want"
	table >"$dir/table"
	diff "$dir/want" "$dir/table"
}

# Two pairs at the same time: without raw sockets, datagrams reach the wrong process first, and wait until that one runs:
# so retries last for 4 s, not half a second.
two() { # GID-INDEX
	local first
	across -g "$1" -m 2048 -s 70000 -n 2 -T 17 &
	first=$!
	port=$((port + 100))
	across -g "$1" -m 2048 -s 70000 -n 2 -T 17 && wait $first
}

# Packets, and their ICRC as the annex has it.
right_packets() { # GID-INDEX
	capture "$dir/cap" across -g "$1" -m 1024 -s 5000 &&
		tcpdump -r "$dir/cap" ip6 2>/dev/null | grep -q . &&
		"$here/decode.py" "$dir/cap" rc.WRITE_ONLY rc.SEND_LAST rc.READ_MIDDLE \
			rc.ATOMIC_ACK rc.ACK
}

# Link-local addresses are tentative at first.
await_link_local() {
	local n left
	for n in "$x" "$y"; do
		left=100
		while ip -n "$n" -6 addr show dev eth0 tentative | grep -q fe80; do
			[ $((left -= 1)) -gt 0 ] || return 1
			sleep 0.1
		done
	done
}
link_local=$(ip -n "$x" -6 addr show dev eth0 scope link | sed -n 's/.*inet6 \([^/]*\).*/\1/p')

check "link-local addresses" await_link_local
check "the table" table_is ::ffff:10.98.0.1 fd98::1 "$link_local"
check "IPv4" across -g 0 -m 4096 -s 70000
check "IPv6, global" across -g 1 -m 4096 -s 70000
check "IPv6, link-local" across -g 2 -m 4096 -s 70000
check "the packets, decoded" right_packets 1
check "an index past the table is refused" refused across -g 3 -m 1024 -o write
plain=("${without_raw[@]}")
check "IPv6 without CAP_NET_RAW" two 1
check "link-local without CAP_NET_RAW" two 2
plain=()
ip -n "$x" addr del 10.98.0.1/24 dev eth0
ip -n "$y" addr del 10.98.0.2/24 dev eth0
x_addr=fd98::1
check "the table without IPv4" table_is fd98::1 "$link_local"
check "hosts without IPv4" across -g 0 -m 4096
exit $bad
