#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# two_hosts.sh SOFTHCA: two network namespaces that a veth pair joins, with no
# setting: the active MTU fits the interface, data goes across and back; also
# between processes that may not open raw sockets, which share the port.
set -u
softhca=$1
[ "$(id -u)" = 0 ] || { echo "SKIP: must run as root: it makes network namespaces"; exit 77; }
for c in ip setpriv ibv_rc_pingpong; do
	command -v "$c" >/dev/null || { echo "SKIP: no $c here"; exit 77; }
done
bad=0
x=sh$$x y=sh$$y

clean_up() {
	[ -z "$(jobs -p)" ] || kill $(jobs -p) 2>/dev/null
	ip netns del "$x" 2>/dev/null
	ip netns del "$y" 2>/dev/null
}
trap clean_up EXIT
ip netns add "$x" && ip netns add "$y" || { echo "SKIP: no network namespaces here"; exit 77; }
ip link add v$$x netns "$x" type veth peer name v$$y netns "$y" || exit 1
ip -n "$x" addr add 10.95.7.1/30 dev v$$x
ip -n "$y" addr add 10.95.7.2/30 dev v$$y
for n in "$x" "$y"; do
	ip -n "$n" link set lo up
	ip -n "$n" link set "v$$${n: -1}" up
done

check() {
	local what=$1
	shift
	if "$@"; then echo "ok   $what"; else echo "BAD  $what"; bad=1; fi
}

mtu() {
	ip netns exec "$x" "$softhca" ibv_devinfo | awk '/active_mtu/ { print $2 }'
}

# on NAMESPACE COMMAND..., and the same without CAP_NET_RAW
on() {
	local n=$1
	shift
	timeout $((20 * ${TEST_SLOW:-1})) ip netns exec "$n" "$@"
}

on_plain() {
	local n=$1
	shift
	on "$n" setpriv --bounding-set -net_raw --inh-caps -net_raw "$@"
}

# pingpong HOW ARGUMENT...: server in one, client in the other
pingpong() {
	local how=$1 server
	shift
	"$how" "$x" "$softhca" ibv_rc_pingpong -g 0 -c "$@" >/dev/null &
	server=$!
	for _ in $(seq 100); do
		on "$x" ss -tln | grep -q ":${PORT:-18515} " && break
		sleep 0.05
	done
	"$how" "$y" "$softhca" ibv_rc_pingpong -g 0 -c "$@" 10.95.7.1 >/dev/null &&
		wait "$server"
}

# Two pairs at the same time: datagrams reach the wrong process first.
both() {
	local first
	PORT=18516 pingpong "$1" -p 18516 -n 300 -s 4096 &
	first=$!
	pingpong "$1" -n 300 -s 4096 && wait "$first"
}

check "MTU 1024 on an interface of 1500" test "$(mtu)" = 1024
check "ping-pong" pingpong on -n 100 -s 65536
check "two at once" both on
check "ping-pong without CAP_NET_RAW" pingpong on_plain -n 100 -s 65536
check "two at once without CAP_NET_RAW" both on_plain
ip -n "$x" link set v$$x mtu 4195
check "MTU 2048 on an interface of 4195" test "$(mtu)" = 2048
ip -n "$x" link set v$$x mtu 4196
check "MTU 4096 on an interface of 4196" test "$(mtu)" = 4096
check "MTU as set" test "$(SOFTHCA_MTU=512 mtu)" = 512
ip -n "$x" link set v$$x down
check "MTU 4096 with loopback alone" test "$(mtu)" = 4096
exit $bad
