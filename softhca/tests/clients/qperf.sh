#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# qperf: sends, writes, reads over RC, UC and UD, and atomics whose results it compares itself. One server
# for all of them, on an InfiniBand link: without a connection manager it addresses by LID.
set -u
. "$(dirname "$0")/lib.sh"
need qperf
own_network
begin
export SOFTHCA_LINK=ib

at_ports=(-lp $((port + 1)) -ip $((port + 2)))
timeout -k 5 1000 "$softhca" qperf "${at_ports[@]:0:2}" >"$dir/server" 2>&1 </dev/null &
server=$!
for ((i = 0; i < 500; i++)); do
	listens $((port + 1)) && break
	sleep 0.02
done

# figures NAME...: each has one above 0, and nothing is complained of.
figures() {
	local name
	why="complaints"
	! grep -qiE 'error|fail|unable|mismatch|invalid' "$dir/client" "$dir/server" || return 1
	for name in "$@"; do
		why="no figure $name above 0"
		awk -v n="$name" '$1 == n && $2 == "=" && $3 > 0 { ok = 1 } END { exit !ok }' \
			"$dir/client" || return 1
	done
}

# qperf_test TEST FIGURES ARGUMENT...
qperf_test() {
	local name="$1${*:3:1}" figures
	[[ $# == 2 ]] || name="$1 ${*:3}"
	[[ $name =~ $filter ]] || return 0
	read -ra figures <<<"$2"
	cases=$((cases + 1))
	why="exit status"
	if timeout -k 5 "$LIMIT" "$softhca" qperf "$host" "${at_ports[@]}" -t 1 "${@:3}" "$1" \
		>"$dir/client" 2>&1 </dev/null && figures "${figures[@]}"; then
		echo "ok     $name"
	else
		failed "$name" "qperf $host -t 1 ${*:3} $1"
	fi
}

for size in 1 4096 262144; do
	qperf_test rc_bw bw -m $size
	qperf_test rc_bi_bw bw -m $size
	qperf_test rc_rdma_write_bw bw -m $size
	qperf_test rc_rdma_read_bw bw -m $size
	qperf_test uc_bw "send_bw recv_bw" -m $size
	qperf_test uc_rdma_write_bw "send_bw recv_bw" -m $size
done
for test in rc_lat uc_lat ud_lat rc_rdma_write_lat rc_rdma_read_lat uc_rdma_write_lat; do
	qperf_test $test latency # woken by events
	qperf_test $test latency -cp1
done
qperf_test rc_rdma_write_poll_lat latency
qperf_test uc_rdma_write_poll_lat latency
qperf_test ud_bw "send_bw recv_bw" -m 1024
qperf_test ud_bi_bw "send_bw recv_bw" -m 1024
qperf_test uc_bi_bw "send_bw recv_bw" -m 65536
for mtu in 256 512 1024 2048; do
	qperf_test rc_bw bw -m 65536 -mt $mtu
done
for test in rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
	qperf_test $test msg_rate
done
timeout 10 "$softhca" qperf "$host" "${at_ports[@]:0:2}" quit >/dev/null 2>&1
wait $server
status=$?
server=
if [[ $status != 0 ]]; then
	why="the server's exit status: $status"
	: >"$dir/client"
	failed server "qperf ${at_ports[*]}"
fi
finish
