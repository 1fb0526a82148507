#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The switches of libmlx5 that change how it posts and reads completions: every combination, each with
# programs that poll, sleep, post inline, share receives. VERBS_DATA compares the data.
set -u
. "$(dirname "$0")/lib.sh"
: "${VERBS_DATA:?names the program}"
need ibv_rc_pingpong ib_write_bw ib_send_bw ib_atomic_lat ucx_perftest
own_network
begin

quietly() {
	why="complaints in $1"
	! grep -qiE "error|fail|couldn't|invalid|wrong" "$1"
}

programs() { # of one combination
	local how=$1
	try "$how verbs_data" quietly "$VERBS_DATA" -n 5
	try "$how verbs_data -N -e -R" quietly "$VERBS_DATA" -n 5 -N -e -R -s 3000 -m 256
	full || return
	try "$how verbs_data -s 64" quietly "$VERBS_DATA" -n 10 -q 2 -s 64 -I 0
	try "$how verbs_data -l 16 -q 1" quietly "$VERBS_DATA" -n 5 -l 16 -q 1
	try "$how rc" quietly ibv_rc_pingpong -g 0 -n 100 -c -s 100
	try "$how rc -e -N" quietly ibv_rc_pingpong -g 0 -n 100 -e -N -s 16
	try "$how ib_write_bw" quietly ib_write_bw -x 0 -n 400 -s 64 -I 64 -q 4
	try "$how ib_send_bw" quietly ib_send_bw -x 0 -n 320 -l 16 -s 30
	try "$how ib_read_lat" quietly ib_read_lat -x 0 -n 100 -s 8
	try "$how ib_atomic_lat" quietly ib_atomic_lat -x 0 -n 100
	local tl
	for tl in rc_verbs rc_mlx5; do # the second reads CQEs by itself
		try "$how $tl am" quietly ucx_perftest -d mlx5_0:1 -x $tl -t am_lat -s 8 -n 100 -w 10
		try "$how $tl get" quietly ucx_perftest -d mlx5_0:1 -x $tl -t get -s 4096 -D zcopy -n 100 -w 10
		try "$how $tl fadd" quietly ucx_perftest -d mlx5_0:1 -x $tl -t fadd -s 8 -n 100 -w 10
	done
}

scatter=(0 1) size=(64 128) shut=(0 1) single=(0 1)
# Two combinations that have each value once.
quick_ones="0/64/1/1 1/128/0/0"
for a in "${scatter[@]}"; do
	for b in "${size[@]}"; do
		for c in "${shut[@]}"; do
			for d in "${single[@]}"; do
				full || [[ " $quick_ones " == *" $a/$b/$c/$d "* ]] || continue
				export MLX5_SCATTER_TO_CQE=$a MLX5_CQE_SIZE=$b
				export MLX5_SHUT_UP_BF=$c MLX5_SINGLE_THREADED=$d
				programs "scatter=$a cqe=$b no-bf=$c single=$d"
			done
		done
	done
done
finish
