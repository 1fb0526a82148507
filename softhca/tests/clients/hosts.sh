#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two network namespaces that a veth pair joins are two hosts: the programs run across, with an
# interface of 1500 and of 4200 bytes, and without CAP_NET_RAW, when the processes of a host share
# the port. VERBS_DATA compares the data.
set -u
. "$(dirname "$0")/lib.sh"
: "${VERBS_DATA:?names the program}"
need ip setpriv ib_write_bw ibv_rc_pingpong ucx_perftest
[[ $(id -u) == 0 ]] || skip "must run as root: it makes network namespaces"
port=10000
a=cl$$a b=cl$$b
remove_hosts() {
	ip netns del $a 2>/dev/null
	ip netns del $b 2>/dev/null
}
cleanup=(remove_hosts)
begin
ip netns add $a && ip netns add $b || skip "no network namespaces here"
ip link add name v$a netns $a type veth peer name v$b netns $b || exit 1
ip -n $a addr add 10.94.1.1/30 dev v$a
ip -n $b addr add 10.94.1.2/30 dev v$b
for n in $a $b; do
	ip -n $n link set lo up
	ip -n $n link set v$n up
done
host=10.94.1.1

# capabilities PREFIX...: words before each command
capabilities() {
	on_server=(ip netns exec $a "$@")
	on_client=(ip netns exec $b "$@")
}
mtu() {
	ip -n $a link set v$a mtu "$1"
	ip -n $b link set v$b mtu "$1"
}

# Both speak to the other host's address: nothing stays inside.
across() {
	why="complaints in $1"
	! grep -qiE "error|fail|couldn't|invalid|wrong" "$1" || return 1
	[[ $1 == */client ]] || return 0
	[[ $program == ib_* ]] || return 0
	why="client: no line of 200 iterations with a rate above 0, or not between the two hosts"
	grep -q 'remote address' "$1" && grep -q 'GID: .*255:255:10:94:01:01' "$1" &&
		awk '$2 == 200 && $5 > 0 { ok = 1 } END { exit !ok }' "$1"
}

over() { # PROGRAM ARGUMENT...
	program=$1
	try "$how: ${*//*\//}" across "$@"
}

perftests() {
	local op
	for op in write read send atomic; do
		over ib_${op}_bw -x 0 -n 200
		over ib_${op}_lat -x 0 -n 200
	done
	over ib_write_bw -x 0 -n 200 -s 1048576
	over ib_read_bw -x 0 -n 200 -s 262144 -b
	over ib_send_bw -x 0 -n 200 -s 30000 -b
}

everything() {
	perftests
	over ib_write_bw -x 0 -n 25 -q 8
	over ib_send_bw -x 0 -n 25 -q 8 -b --use_old_post_send
	over ibv_rc_pingpong -g 0 -n 200 -c -s 100000
	over ibv_rc_pingpong -g 0 -n 200 -e -N
	over ibv_srq_pingpong -g 0 -n 100 -c -q 4
	over ucx_perftest -d mlx5_0:1 -x rc_verbs -t put_bw -s 8 -n 2000 -w 10
	over ucx_perftest -d mlx5_0:1 -x rc_mlx5 -t am_lat -s 8 -n 200 -w 10
	over ucx_perftest -d mlx5_0:1 -x rc_mlx5 -t get -s 65536 -D zcopy -n 100 -w 10
	over "$VERBS_DATA"
	over "$VERBS_DATA" -N -e -R -L -m 256
	over "$VERBS_DATA" -s 1048576 -n 2 -q 2 -o 50
	over "$VERBS_DATA" -q 64 -o 1000 -n 5
	over "$VERBS_DATA" -D -n 5
	over ucx_perftest -d mlx5_0:1 -x dc_mlx5 -t am_bw -s 1024 -D bcopy -n 500 -w 10
}

few() {
	over ib_write_bw -x 0 -n 200
	over ib_send_lat -x 0 -n 200
	over "$VERBS_DATA" -n 5
}

for mtu in 1500 4200; do
	mtu $mtu
	how="mtu $mtu"
	full || [[ $mtu == 1500 ]] || break
	capabilities
	if full; then everything; else few; fi
	how="mtu $mtu, no CAP_NET_RAW"
	capabilities setpriv --bounding-set -net_raw --inh-caps -net_raw
	if full; then everything; else few; fi
done
finish
