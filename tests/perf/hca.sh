# SPDX-License-Identifier: BSD-3-Clause
# softhca itself: message rate, latency, bandwidth, from 1 to 1024 QPs and 2 to
# 16 processes, through shared memory and through UDP; beside them UCX over tcp
# and over shared memory (posix), which has no QPs: one figure for each table.
#
# Each round measures every figure once, its columns in turn; medians of ROUNDS
# (here 3) are compared, or of those that begin within HCA_SECONDS (150). A
# figure that no round came to is shown as -.

hca_lines=()
hca_until=$((SECONDS + ${HCA_SECONDS:-150}))
hca_port=${HCA_PORT:-13998}
export UCX_LOG_LEVEL=error

# inline ARGUMENTS: polls do the device's work.
hca_shm()
{
	local inline=0
	[ "$1" != inline ] || { inline=1; shift; }
	SOFTHCA_INLINE=$inline SOFTHCA_SHM=1 timeout 8 "$softhca" "$bin/tests/perf/hca" "$@"
}

hca_udp()
{
	SOFTHCA_SHM=0 timeout 8 "$softhca" "$bin/tests/perf/hca" "$@"
}

hca_listens() # PORT
{
	local i
	for ((i = 0; i < 60; i++)); do
		grep -qi "$(printf ':%04X 00000000:0000 0A' "$1")" /proc/net/tcp && return
		sleep 0.05
	done
}

# TRANSPORT DEVICE COLUMN PAIRS OPTIONS...: a column of the last line of ucx_perftest,
# summed over so many pairs of processes at once.
hca_ucx()
{
	local tl=$1 dev=$2 column=$3 pairs=$4 i servers="" clients=""
	shift 4
	for ((i = 0; i < pairs; i++)); do
		timeout 8 ucx_perftest -p $((hca_port + i)) >/dev/null 2>&1 </dev/null &
		servers+=" $!"
	done
	for ((i = 0; i < pairs; i++)); do hca_listens $((hca_port + i)); done
	for ((i = 0; i < pairs; i++)); do
		timeout 8 ucx_perftest -x "$tl" -d "$dev" -w 100 -f -p $((hca_port + i)) "$@" \
			localhost </dev/null >"$out/ucx.$i" 2>>"$out/hca.log" &
		clients+=" $!"
	done
	# shellcheck disable=SC2086
	wait $clients
	# shellcheck disable=SC2086
	kill $servers 2>/dev/null # where a client did not come through
	# shellcheck disable=SC2086
	wait $servers 2>/dev/null
	for ((i = 0; i < pairs; i++)); do
		awk -v c="$column" '/^ *[0-9]/ { v = c == 8 ? $c / 1e6 : $c } END { print v }' "$out/ucx.$i"
	done | awk '{ n += $1 } END { if (n) print n }'
}

hca_tcp() { hca_ucx tcp lo "$@"; }
hca_posix() { hca_ucx posix memory "$@"; }

# NAME UNIT "ARGUMENTS of hca" ["tcp's" ["posix's"]]: a line of a table; - is no figure.
hca_line()
{
	local udp=$3
	[[ $3 != loop* && $3 != inline* && $3 != bwfile* && $3 != hop ]] || udp=-
	hca_lines+=("$1|$2|$3|$udp|${4:--}|${5:-${4:--}}")
}

hca_table() # TITLE
{
	hca_lines+=("|$1")
}

# One round: each figure once, its columns one after the other.
hca_round()
{
	local line name unit side i
	local -a args
	for line in "${hca_lines[@]}"; do
		IFS='|' read -r name unit args[0] args[1] args[2] args[3] <<<"$line"
		i=0
		[ -n "$name" ] && for side in shm udp tcp posix; do
			[ "${args[i]}" = - ] || ((SECONDS >= hca_until)) ||
				# shellcheck disable=SC2086
				"hca_$side" ${args[i]} 2>>"$out/hca.log" |
				awk 'NR == 1 && NF { print $1 }' >>"$out/hca.$name.$side"
			((++i))
		done
	done
}

hca_print()
{
	local line name unit rest side v
	local -A m
	for line in "${hca_lines[@]}"; do
		IFS='|' read -r name unit rest <<<"$line"
		if [ -z "$name" ]; then
			printf '\n%s\n%-36s %10s %10s %10s %10s\n' "$unit" "" shm udp ucx-tcp ucx-posix
			continue
		fi
		for side in shm udp tcp posix; do
			v=$(cat "$out/hca.$name.$side" 2>/dev/null | median)
			m[$side]=${v%% *}
		done
		printf '%-36s %10s %10s %10s %10s %s\n' "$name" "${m[shm]:--}" "${m[udp]:--}" \
			"${m[tcp]:--}" "${m[posix]:--}" "$unit"
		echo "$name,$unit,${m[shm]},${m[udp]},${m[tcp]},${m[posix]}" >>"$out/hca.csv"
		result "hca_$name" "${m[shm]:--}" "$unit" \
			"udp ${m[udp]:--} ucx_tcp ${m[tcp]:--} ucx_posix ${m[posix]:--}"
	done
}

# Columns of ucx_perftest -f: 2 median latency, 6 MB/s, 8 messages per second.
echo "figure,unit,shm,udp,ucx_tcp,ucx_posix" >"$out/hca.csv"
hca_table "8-byte writes of two processes to each other (UCX: active messages, one way), Mmsg/s"
ucx="8 1 -t am_bw -s 8 -n 100000"
for qps in 1 4 16 64 256 1024; do
	hca_line "rate_${qps}_qps" Mmsg/s "rate 2 $qps" "$ucx"
	ucx=-
done
hca_line rate_one_way Mmsg/s "flow 16"
hca_table "the same in a ring of processes, 16 QPs each (UCX: pairs)"
for procs in 2 4 8 16; do
	hca_line "rate_${procs}_processes" Mmsg/s "rate $procs 16" "8 $((procs / 2)) -t am_bw -s 8 -n 30000"
done
hca_table "half a round trip of 8 bytes (UCX: active messages), us"
ucx="2 1 -t am_lat -s 8 -n 5000"
for qps in 1 64 1024; do
	hca_line "latency_${qps}_qps" us "lat $qps" "$ucx"
	ucx=-
done
hca_table "8 bytes inside the process, from post to completion, us"
for qps in 1 4 16 64 256 1024 "1024 1"; do
	hca_line "loopback_${qps/ /_of_which_}_qps" us "loop $qps"
	hca_line "loopback_inline_${qps/ /_of_which_}_qps" us "inline loop $qps"
done
hca_line loopback_cache_line us hop
hca_table "128 KiB writes (UCX tcp: active messages of 8 KiB; posix: put), MB/s"
hca_line bandwidth_128K MB/s "bw 1 131072" "6 1 -t am_bw -s 8192 -n 20000 -D bcopy" \
	"6 1 -t put_bw -s 131072 -n 5000 -D short"
hca_line bandwidth_128K_again MB/s "bw 1 131072 131072" # the same 128 KiB, in cache
hca_line bandwidth_file_128K MB/s "bwfile 1 131072"
hca_line loopback_bw_128K MB/s "loopbw 1 131072"
for ((round = 0; round < ${ROUNDS:-3} && SECONDS < hca_until; round++)); do hca_round; done
hca_print
for span in 4194304 131072; do
	set -- $(hca_shm bw 1 131072 $span)
	result "hca_memcpy_128K_of_$span" "$(((${2:-0} + ${3:-0}) / 2))" MB/s
	result "hca_call_128K_of_$span" "$(((${4:-0} + ${5:-0}) / 2))" MB/s \
		"process_vm_readv by itself, before ${4:--} and after ${5:--} a run of $1"
done
set -- $(hca_shm xcopy 131072)
result hca_memcpy_other_core_128K "${1:--}" MB/s "of what another core has just written, which took ${2:--} MB/s"
for how in "" inline; do
	set -- $(hca_shm $how loop 1024)
	result "hca_loopback_${how:+${how}_}posting" "${3:--}" us \
		"of $1 with 1024 QPs, in ibv_post_send; a look at the clock ${4:--}; fastest tenth ${5:--}"
done
result hca_idle "$(hca_shm idle)" "% of a core" "500 naps of 2 ms a second, a program that does nothing else $(hca_shm naps)"
result hca_cpu_per_message "$(hca_shm rate 2 16 | awk '{ print $2 }')" ns \
	"udp $(hca_udp rate 2 16 | awk '{ print $2 }')"
