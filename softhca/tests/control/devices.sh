#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# devices.sh SOFTHCA PROGRAM: two devices, both link layers; then two processes, one on each; then two
# hosts with two interfaces each: the second device is the second interface.
set -u
softhca=$1 program=$2
export SOFTHCA_DEVICES=2
bad=0
for link in eth ib; do
	"$softhca" --link=$link "$program" || bad=1
done
command -v ibv_rc_pingpong >/dev/null || { echo "SKIP: no ibv_rc_pingpong here"; exit 77; }
port=$((20000 + RANDOM % 12000))
limit=$((30 * ${TEST_SLOW:-1}))
on_server=() on_client=()

# pingpong SERVER-DEVICE CLIENT-DEVICE ADDRESS
pingpong() {
	local server
	timeout -k 5 $limit "${on_server[@]}" "$softhca" ibv_rc_pingpong -d "$1" -g 0 -c -n 50 -p $port &
	server=$!
	for _ in $(seq 100); do
		"${on_server[@]}" cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
			grep -q ":$(printf %04X $port) .* 0A " && break
		sleep 0.1
	done
	timeout -k 5 $limit "${on_client[@]}" "$softhca" ibv_rc_pingpong -d "$2" -g 0 -c -n 50 -p $port \
		"$3" || bad=1
	wait $server || bad=1
}
pingpong mlx5_0 mlx5_1 127.0.0.1

if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null; then
	echo "no root or no ip here: without two interfaces"
	exit $bad
fi
a=sd$$a b=sd$$b
trap 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null' EXIT
ip netns add $a && ip netns add $b || exit 77
ip -n $a link set lo up
ip -n $b link set lo up
for i in 1 2; do
	ip link add name d$i netns $a type veth peer name d$i netns $b || exit 1
	ip -n $a addr add 10.97.$i.1/30 dev d$i
	ip -n $b addr add 10.97.$i.2/30 dev d$i
	ip -n $a link set d$i up
	ip -n $b link set d$i up
done
ip -n $a link set d2 mtu 4200
ip -n $b link set d2 mtu 4200
on_server=(ip netns exec $a) on_client=(ip netns exec $b)
received() { # INTERFACE
	"${on_server[@]}" cat "/sys/class/net/$1/statistics/rx_packets"
}
is() { # WHAT GOT WANTED
	[ "$2" = "$3" ] && return
	echo "FAILED: $1: $2, not $3"
	bad=1
}
for i in 1 2; do
	sysfs=/sys/class/infiniband/mlx5_$((i - 1))/ports/1
	is "GID of device $i" "$("${on_server[@]}" "$softhca" cat $sysfs/gids/0)" \
		"0000:0000:0000:0000:0000:ffff:0a61:0${i}01"
	is "interface of device $i" \
		"$("${on_server[@]}" "$softhca" cat $sysfs/gid_attrs/ndevs/0)" d$i
	is "MTU of device $i" "$("${on_server[@]}" "$softhca" ibv_devinfo -d mlx5_$((i - 1)) |
		awk '/active_mtu/ { print $2 }')" $((i == 1 ? 1024 : 4096))
	before=$(received d$i)
	pingpong mlx5_$((i - 1)) mlx5_$((i - 1)) 10.97.$i.1
	[ $(($(received d$i) - before)) -ge 50 ] || is "packets by d$i" few 50
done
exit $bad
