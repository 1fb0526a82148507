# SPDX-License-Identifier: BSD-3-Clause
# softhca itself: message rate, latency, bandwidth, many QPs, many processes,
# through shared memory and through UDP; UCX over tcp and over shared memory
# (posix) in the same rounds, for scale.

# Median of the first number of a command's output over the rounds.
hca_median()
{
	local i
	for ((i = 0; i < rounds; i++)); do
		"$@" 2>>"$out/hca.log" | awk 'NR == 1 { print $1 }'
	done | median | awk '{ print $1 }'
}

hca_shm()
{
	SOFTHCA_SHM=1 timeout 100 "$softhca" "$bin/tests/perf/hca" "$@"
}

hca_udp()
{
	SOFTHCA_SHM=0 timeout 100 "$softhca" "$bin/tests/perf/hca" "$@"
}

# TRANSPORT DEVICE TEST SIZE COLUMN: a column of the last line
hca_ucx()
{
	local server args="-x $1 -d $2 -t $3 -s $4 -n 20000 -w 100 -f -p 13998"
	[ "$4" -le 64 ] || args+=" -D bcopy"
	export UCX_LOG_LEVEL=error
	timeout 60 ucx_perftest -p 13998 >/dev/null 2>&1 &
	server=$!
	sleep 1
	# shellcheck disable=SC2086
	timeout 60 ucx_perftest $args localhost </dev/null |
		awk -v c="$5" '/^ *[0-9]/ { v = c == 8 ? $c / 1e6 : $c } END { print v }'
	kill "$server" 2>/dev/null # where the client did not come through
	wait "$server" 2>/dev/null
}

hca_line() # NAME UNIT UCX_TEST SIZE COLUMN ARGUMENTS...
{
	local name=$1 unit=$2 test=$3 size=$4 column=$5 s u t="" p=""
	shift 5
	s=$(hca_median hca_shm "$@")
	u=$(hca_median hca_udp "$@")
	if [ "$test" != - ]; then
		t=$(hca_median hca_ucx tcp lo "$test" "$size" "$column")
		p=$(hca_median hca_ucx posix memory "$test" "$size" "$column")
	fi
	printf '%-22s %12s %12s %12s %12s %s\n' "$name" "${s:--}" "${u:--}" "${t:--}" "${p:--}" "$unit"
	echo "$name,$unit,$s,$u,$t,$p" >>"$out/hca.csv"
	result "hca_$name" "${s:--}" "$unit" "udp ${u:--} ucx_tcp ${t:--} ucx_posix ${p:--}"
}

echo "figure,unit,shm,udp,ucx_tcp,ucx_posix" >"$out/hca.csv"
printf '%-22s %12s %12s %12s %12s\n' figure shm udp ucx-tcp ucx-posix
# Columns of ucx_perftest -f: 2 median latency, 6 MB/s, 8 messages per second.
hca_line latency us am_lat 8 2 lat 1
hca_line bandwidth_128K MB/s am_bw 8192 6 bw 1 131072
hca_line rate_1_qp Mmsg/s am_bw 8 8 rate 2 1
for qps in 16 256 1024; do
	hca_line "rate_${qps}_qps" Mmsg/s - - - rate 2 $qps
done
for procs in 4 8 16; do
	hca_line "rate_${procs}_processes" Mmsg/s - - - rate $procs 16
done
for qps in 1 64 1024; do
	hca_line "loopback_${qps}_qps" us - - - loop $qps
done
result hca_memcpy_128K "$(hca_shm bw 1 131072 | awk '{ print ($2 + $3) / 2 }')" MB/s
result hca_idle "$(hca_shm idle)" "% of a core"
result hca_cpu_per_message "$(hca_shm rate 2 16 | awk '{ print $2 }')" ns "udp $(hca_udp rate 2 16 | awk '{ print $2 }')"
