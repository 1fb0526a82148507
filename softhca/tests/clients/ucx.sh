#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ucx_perftest over rc_verbs and ud_verbs, and over rc_mlx5, dc_mlx5 and ud_mlx5, which write queue
# entries and doorbells and read completions themselves.
set -u
. "$(dirname "$0")/lib.sh"
need ucx_perftest
own_network
begin

# The client's last line counts the operations and gives figures above zero; UCX logs no error.
final() {
	why="complaints in $1"
	! grep -qiE 'error|fail|warn|assert|unsupported' "$1" || return 1
	[[ $1 == */client ]] || return 0
	why="$1: no line Final with $messages operations and figures above 0"
	awk -v want="$messages" '$1 == "Final:" && $2 == want && $3 + 0 > 0 && $NF + 0 > 0 { ok = 1 }
		END { exit !ok }' "$1"
}

# uct TRANSPORT TEST SIZE MESSAGES ARGUMENT...
uct() {
	messages=$4
	local more=("${@:5}")
	try "$1 $2 -s $3${more[*]:+ ${more[*]}}" final ucx_perftest -d mlx5_0:1 -x "$1" -t "$2" -s "$3" \
		-n "$4" -w 20 "${more[@]}"
}

everything() { # TRANSPORT
	local t=$1 size op
	for size in 8 32; do # what goes inline
		uct "$t" put_lat $size 200
		uct "$t" put_bw $size 1000
		uct "$t" am_lat $size 200
		uct "$t" am_bw $size 1000
	done
	for size in 8 64 1024 4096 8192; do # copied into UCX's own buffers
		for op in put_lat put_bw get am_lat am_bw; do
			uct "$t" $op $size 200 -D bcopy
		done
	done
	for size in 8 256 4096 65536 1048576; do
		for op in put_lat put_bw get; do
			# UCX reads less than 65 bytes by copy alone.
			[[ $op != get || $size -gt 64 ]] || continue
			uct "$t" $op $size $((size > 65536 ? 20 : 100)) -D zcopy
		done
	done
	for size in 64 1024 8000; do
		uct "$t" am_lat $size 100 -D zcopy
		uct "$t" am_bw $size 500 -D zcopy
	done
	for op in add_lat add_mr; do
		uct "$t" $op 8 200
	done
	for op in fadd cswap; do
		uct "$t" $op 8 200
	done
	if [[ $t == *_mlx5 ]]; then # by DEVX
		for op in add_lat fadd cswap swap; do
			uct "$t" $op 4 200
		done
		uct "$t" swap 8 200
	fi
	uct "$t" fadd 8 1000 -O 16
	uct "$t" put_bw 8 20000
}

# Datagrams: active messages, whose reliability is UCX's own. What fits into a packet.
datagrams() { # TRANSPORT
	local t=$1 size
	for size in 8 32 100; do
		uct "$t" am_lat $size 200
		uct "$t" am_bw $size 1000
	done
	for size in 8 64 1024 4000; do
		uct "$t" am_lat $size 200 -D bcopy
		uct "$t" am_bw $size 500 -D bcopy
	done
	for size in 64 1024 3000; do
		uct "$t" am_lat $size 100 -D zcopy
		uct "$t" am_bw $size 500 -D zcopy
	done
	uct "$t" am_bw 8 20000
}

if full; then
	everything rc_verbs
	everything rc_mlx5
	everything dc_mlx5
	datagrams ud_verbs
	datagrams ud_mlx5
else
	uct rc_verbs put_lat 8 200
	uct rc_verbs get 4096 100 -D zcopy
	uct rc_verbs fadd 8 100
	uct rc_mlx5 put_bw 8 2000
	uct rc_mlx5 am_lat 8 100
	uct rc_mlx5 cswap 8 100
	uct rc_mlx5 swap 4 100
	uct rc_mlx5 put_bw 65536 50 -D zcopy
	uct rc_mlx5 am_lat 1024 100 -D zcopy # header inline, data by address
	uct ud_mlx5 am_lat 1024 100 -D bcopy
	uct dc_mlx5 am_bw 1024 200 -D bcopy
fi
finish
