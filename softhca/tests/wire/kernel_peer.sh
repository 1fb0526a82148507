#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kernel_peer.sh SOFTHCA WIRE_PEER GUEST_DIR [quick|full]: softhca and the Linux kernel's own RoCEv2
# (rdma_rxe, in a guest without acceleration), each as client of the other. GUEST_DIR keeps kernel and
# initrd between runs.
set -u
me=kernel_peer
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../tests/launch/lib.sh"
. "$here/lib.sh"
softhca=$1 peer=$2 guest_dir=$3 profile=${4:-quick}
need_root "it makes a network namespace and a tap"
need qemu-system-x86_64 qemu-system-x86
need ip iproute2
make_dir kernel_peer

trap_all
mkdir -p "$guest_dir"
exec 7>"$guest_dir/lock"
flock -w 100 7 || fail "another run makes the guest"
"$here/make_guest" "$guest_dir" "$peer" 7>&- || exit
exec 7>&-

ns=kp$$
port=$((20000 + $$ % 10000))
make_ns "$ns"
boot_guest "$ns" 4200

# GID indices. The kernel's entry 0 is link-local, then come IPv4 and IPv6 as softhca has them.
use_ipv4() {
	guest_gid=1 host_gid=0
}

use_ipv6() {
	guest_gid=2 host_gid=1
}
use_ipv4

# Options that name port, device and GID.
options() { # guest|host PROGRAM
	case $1.$2 in
	guest.wire_peer | guest.ibv_*) echo "-p $port -d rxe0 -g $guest_gid" ;;
	guest.*) echo "-F -p $port -d rxe0 -x $guest_gid" ;;
	host.wire_peer | host.ibv_*) echo "-p $port -g $host_gid" ;;
	*) echo "-F -p $port -x $host_gid" ;;
	esac
}

on_softhca() { # PROGRAM ARGUMENT...
	local prog=$1
	shift
	[ "$prog" != wire_peer ] || prog=$peer
	timeout -k 5 $((100 * slow)) ip netns exec "$ns" "$softhca" "$prog" "$@" 7>&- 8>&- 9>&-
}

# The server in the guest, the client on softhca.
to_kernel() { # PROGRAM ARGUMENT...
	local c
	port=$((port + 1))
	guest "serve $port $1 $(options guest "$1") ${*:2}" &&
		on_softhca "$1" $(options host "$1") "${@:2}" 10.99.0.2
	c=$?
	guest "served $port" && [ $c = 0 ]
}

# The other way round.
from_kernel() { # PROGRAM ARGUMENT...
	local c server
	port=$((port + 1))
	on_softhca "$1" $(options host "$1") "${@:2}" &
	server=$!
	await_port "$ns" $port
	guest "timeout 90 $1 $(options guest "$1") ${*:2} 10.99.0.1"
	c=$?
	wait $server && [ $c = 0 ]
}

both() { # PROGRAM ARGUMENT...
	check "to the kernel:   $*" to_kernel "$@"
	check "from the kernel: $*" from_kernel "$@"
}

# What is refused, and what the refusing side says. The kernel calls a receive that is too short a
# remote operation error, and does not post an atomic that is not aligned.
refusals() {
	local -x SOFTHCA_STRICT=0 # not for strict mode: wrong on purpose
	check "refused by the kernel" to_kernel wire_peer -m 1024 \
		-o bad_write,bad_read,bad_atomic,odd_atomic,late_receive,write
	check "refused by softhca" from_kernel wire_peer -m 1024 \
		-o bad_write,bad_read,bad_atomic,short_receive,late_receive,write
}

# The server says how many reads may be outstanding; the kernel would say more than the client can.
perftest() { # ARGUMENT...
	both ib_write_bw -n 20 "$@"
	both ib_send_bw -n 20 "$@"
	both ib_read_bw -n 20 -o 4 "$@"
}

quick() {
	both wire_peer -m 1024 -s 70000
	both ibv_rc_pingpong -c -n 20 -s 9000 -m 2048
	both ib_atomic_bw -n 20 -o 4
	perftest -s 16384
	refusals
	use_ipv6
	both wire_peer -m 4096 -s 70000
}

# UC and UD: nothing is repeated, so nothing may get lost.
unacknowledged() {
	local size
	for size in 1 1000 4096 20000; do
		both ibv_uc_pingpong -n 20 -s $size -m 1024
	done
	for size in 1 1000 4096; do # one packet
		both ibv_ud_pingpong -n 20 -s $size
	done
	both wire_peer -t uc -m 1024 -s 70000
	both wire_peer -t ud -m 4096
}

# A percent of the packets of both directions is lost, in the guest.
lose() {
	guest "/bin/tc qdisc add dev eth0 root netem loss 1%" &&
		guest "/bin/ip link set ifb0 mtu 9000 up" &&
		guest "/bin/tc qdisc add dev ifb0 root netem loss 1%" &&
		guest "/bin/tc qdisc add dev eth0 ingress" &&
		guest "/bin/tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0"
}

# pingpong's client leaves with its last message: an acknowledgement that is lost then nobody repeats, and the server
# waits in vain. One packet in a hundred: not three times.
thrice() {
	"$@" || "$@" || "$@"
}

full() {
	local mtu size
	refusals
	for mtu in 256 512 1024 2048 4096; do
		both wire_peer -m $mtu
		for size in 1 4096 65536 1048576; do
			both ibv_rc_pingpong -c -n 5 -s $size -m $mtu
			perftest -m $mtu -s $size
		done
		both ib_atomic_bw -m $mtu -n 50 -o 4
	done
	unacknowledged
	use_ipv6
	both wire_peer -m 1024
	unacknowledged
	both ibv_rc_pingpong -c -n 20 -s 65536 -m 4096
	perftest -m 2048 -s 65536
	use_ipv4
	check "loss" lose
	for mtu in 256 1024 4096; do
		both wire_peer -m $mtu -n 3 -s 70000
		both wire_peer -m $mtu -n 3 -o mix,fetch_add,cmp_swap,late_receive
		check "to the kernel:   pingpong, $mtu" thrice to_kernel ibv_rc_pingpong -c -n 20 -s 65536 -m $mtu
		check "from the kernel: pingpong, $mtu" thrice from_kernel ibv_rc_pingpong -c -n 20 -s 65536 -m $mtu
		perftest -m $mtu -s 65536
		both ib_atomic_bw -m $mtu -n 50 -o 4
	done
}

$profile
exit $bad
