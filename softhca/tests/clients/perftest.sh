#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The eight programs of perftest with the options that change how they post and poll. perftest
# compares no data: verbs_data does. Checked here is that every line of the table was printed, for the
# iterations asked for, with figures above zero.
set -u
. "$(dirname "$0")/lib.sh"
need ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_atomic_bw ib_atomic_lat
own_network
begin

# The table, in FILE: one line for each of $rows sizes up to $last, $iterations each. Column 2 has the
# iterations, column 5 the rate of messages or the typical latency (the average bandwidth may be
# rounded to 0.00). A server that only stands by prints the last line, or no table.
table() {
	why="$1: not $rows sizes up to $last with $iterations iterations and figures above 0"
	local want=$rows
	[[ $1 == */server ]] && want=1
	[[ $passive == 1 && $1 == */server ]] && return 0
	awk -v rows="$want" -v last="$last" -v iterations="$iterations" '
		/^ *#bytes/ { table = 1; next }
		table && $1 ~ /^[0-9]+$/ {
			n++
			if ($2 != iterations || $5 + 0 <= 0) bad = 1
			max = $1
		}
		END { exit !(n >= rows && max == last && !bad) }' "$1" || return 1
	why="complaints in $1"
	! grep -qiE "error|fail|couldn't|unable|Did not|wrong" "$1"
}

# perf PROGRAM ITERATIONS ARGUMENT...; `rows` and `last` when -a is among the arguments.
perf() {
	local program=$1 i
	iterations=$2
	shift 2
	rows=1
	last=65536
	passive=0
	local each=$iterations size=()
	case $program in
	ib_atomic_*) last=8 ;;
	*_lat) last=2 ;;
	esac
	[[ $program != ib_read_lat && $program != ib_atomic_lat ]] || passive=1
	for ((i = 1; i <= $#; i++)); do
		case ${!i} in
		-a) rows=23 last=8388608 ;;
		-s) local n=$((i + 1)) && last=${!n} ;;
		-q) local n=$((i + 1)) && iterations=$((each * ${!n})) ;;
		esac
	done
	try "$program${*:+ $*}${label:-}" table "$program" -x 0 -n "$each" "$@"
}

# Iterations are a multiple of the length of lists and of completion moderation.
bandwidth() { # PROGRAM
	local post size sizes=(-s 1 -s 4096 -s 1048576)
	[[ $1 == ib_atomic_bw ]] && sizes=()
	for post in "" --use_old_post_send; do
		perf "$1" 400 $post
		perf "$1" 400 -b $post
		perf "$1" 80 -q 8 $post
		perf "$1" 80 -q 8 -b $post
		perf "$1" 320 -l 16 $post
		perf "$1" 320 -l 16 -q 8 $post
		perf "$1" 400 -Q 1 $post
		perf "$1" 400 -Q 100 $post
		perf "$1" 400 -Q 100 -b $post
		[[ $1 == ib_atomic_bw ]] || perf "$1" 10 -a $post
	done
	[[ $1 == ib_atomic_bw ]] || perf "$1" 5 -a -b -q 2
	for ((i = 0; i < ${#sizes[@]}; i += 2)); do
		perf "$1" 200 "${sizes[@]:i:2}"
	done
	# Else perftest counts the last, shorter group as a whole one, takes itself for done, polls
	# no more and waits for the rest for ever: seen with 40 of 16 (perftest 4.5, ib_atomic_bw).
	perf "$1" 48 -q 64 -t 16
}

inline() { # PROGRAM
	local size post
	for size in 1 16 44 188; do
		for post in "" --use_old_post_send; do
			perf "$1" 200 -I 188 -s $size $post
		done
	done
}

latency() { # PROGRAM
	local post
	for post in "" --use_old_post_send; do
		perf "$1" 200 $post
		[[ $1 == ib_atomic_lat ]] || perf "$1" 10 -a $post
		[[ $1 == ib_atomic_lat ]] || perf "$1" 100 -s 4096 $post
	done
}

events() { # PROGRAM
	perf "$1" 200 -e
	perf "$1" 200 -e --use_old_post_send
}

mtus() { # PROGRAM
	local mtu
	for mtu in 256 512 1024 2048 4096; do
		perf "$1" 100 -m $mtu -s 10000
	done
}

outstanding() { # PROGRAM
	local n
	for n in 1 2 16; do
		perf "$1" 200 -o $n
	done
}

# Transports without acknowledgement: what is sent faster than it is taken may be lost, as on any
# network, and then ib_send_bw waits for ever. So as many are sent as fit into the receive queue.
unacknowledged() {
	local post
	for post in "" --use_old_post_send; do
		perf ib_write_bw 200 -c UC $post
		perf ib_write_bw 200 -c UC -q 8 -s 4096 $post
		perf ib_write_bw 10 -c UC -a $post
		perf ib_write_lat 200 -c UC $post
		perf ib_write_lat 200 -c UC -I 64 -s 64 $post
		perf ib_send_bw 200 -c UC -s 4096 $post
		perf ib_send_lat 200 -c UC $post
		perf ib_send_lat 100 -c UC -e $post
		perf ib_send_bw 200 -c UD -s 2048 $post
		perf ib_send_bw 160 -c UD -s 64 -l 16 $post
		perf ib_send_lat 200 -c UD $post
		perf ib_send_lat 100 -c UD -e -s 4096 $post
		perf ib_send_lat 100 -c UD -I 64 -s 64 $post
	done
	perf ib_send_bw 100 -c UD -s 1024 -q 4
	perf ib_send_bw 100 -c UD -s 1024 -b
}

everything() {
	local op
	for op in write read send atomic; do
		bandwidth ib_${op}_bw
		latency ib_${op}_lat
	done
	for op in ib_write_bw ib_send_bw ib_write_lat ib_send_lat; do
		inline $op
	done
	for op in ib_read_bw ib_send_bw ib_atomic_bw ib_read_lat ib_send_lat ib_atomic_lat; do
		events $op
	done
	for op in ib_write_bw ib_read_bw ib_send_bw; do
		mtus $op
	done
	for op in ib_read_bw ib_atomic_bw ib_read_lat ib_atomic_lat; do
		outstanding $op
	done
	for op in "" --use_old_post_send; do
		perf ib_atomic_bw 200 -A CMP_AND_SWAP $op
		perf ib_atomic_lat 200 -A CMP_AND_SWAP $op
	done
	unacknowledged
	perf ib_send_bw 400 --use-srq -q 8
	perf ib_send_bw 200 --use-srq
	perf ib_send_lat 100 --use-srq
	perf ib_send_lat 100 --use-srq -e
	perf ib_send_bw 320 --recv_post_list=16 -l 16
	perf ib_write_bw 400 --mr_per_qp -q 4
	perf ib_write_bw 400 --reversed
}

if full; then
	everything
else
	perf ib_write_bw 200 -q 8
	perf ib_write_lat 200
	perf ib_read_bw 200 -Q 1 --use_old_post_send
	perf ib_read_lat 200 -e
	perf ib_send_bw 320 -l 16
	perf ib_send_lat 200 -I 64 -s 64
	perf ib_atomic_bw 200 -b
	perf ib_atomic_lat 200 -A CMP_AND_SWAP
	perf ib_send_lat 200 -c UD
	perf ib_write_bw 100 -c UC
fi
finish
