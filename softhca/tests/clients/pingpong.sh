#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's ping-pong programs: every size class, path MTU, events, its own data check.
set -u
. "$(dirname "$0")/lib.sh"
need ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong
own_network
begin

# What was asked for was exchanged: bytes both ways, messages, and no word about wrong data.
as_asked() {
	local total=$((bytes * messages * 2))
	why="no line \"$total bytes in\", \"$messages iters in\" in $1"
	grep -q "^$total bytes in " "$1" && grep -q "^$messages iters in " "$1" || return 1
	why="complaints in $1"
	! grep -qiE 'invalid|fail|error|couldn' "$1"
}

# pingpong TYPE SIZE MESSAGES ARGUMENT...
pingpong() {
	local type=$1
	bytes=$2
	messages=$3
	shift 3
	local address=(-g 0)
	[[ ${SOFTHCA_LINK:-} == ib ]] && address=()
	try "$type${*:+ $*} -s $bytes${SOFTHCA_LINK:+ on $SOFTHCA_LINK}" as_asked \
		"ibv_${type}_pingpong" "${address[@]}" -s "$bytes" -n "$messages" "$@"
}
# The same on an InfiniBand link: addressed by LID.
on_ib() {
	SOFTHCA_LINK=ib "$@"
}

types() { # those with connections
	local mtu size events
	for events in "" -e; do
		# shellcheck disable=SC2086 # empty or a word
		for mtu in 256 512 1024 2048 4096; do
			pingpong "$1" 1 100 -c -m $mtu $events
			pingpong "$1" 65536 50 -c -m $mtu $events
		done
	done
	for size in 2 3 7 64 255 256 257 1000 4095 4096 4097 10000 262144 1048576; do
		pingpong "$1" $size 20 -c
	done
	pingpong "$1" 4096 2000 -r 16
	on_ib pingpong "$1" 4096 100 -c
}

datagrams() { # what fits into a packet
	local size
	for size in 1 2 100 255 1024 2048 4096; do
		pingpong ud $size 100 -c
		pingpong ud $size 50 -c -e
	done
	pingpong ud 2048 2000 -r 16
	on_ib pingpong ud 2048 100 -c
}

pingpong rc 4096 200 -c -e
pingpong rc 1 200 -N
on_ib pingpong rc 4096 100 -c
pingpong srq 4096 100 -c -q 4
pingpong uc 4096 100 -c
pingpong ud 2000 100 -c -e
on_ib pingpong ud 1000 50 -c
if full; then
	types rc
	types uc
	for size in 1 64 4096 1048576; do
		pingpong rc $size 50 -N -c
		pingpong rc $size 50 -N -e
	done
	for q in 1 16; do
		pingpong srq 1 50 -q $q
		pingpong srq 4096 50 -c -e -q $q
		pingpong srq 1048576 10 -c -q $q
	done
fi
finish
