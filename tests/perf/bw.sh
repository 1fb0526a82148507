# SPDX-License-Identifier: BSD-3-Clause
# Streamed puts: bandwidth of each run, median over the rounds.

bw_gdr()
{
	GDR_TRANSPORTS=nic two_pes "$bin/tests/perf/p2p" bw "$1" "$2" 2>"$out/gdr.log" | awk '{ print $2 }'
}

bw_perftest() # average, MB/s
{
	server_client "ib_write_bw -F --report_gbits -s $1 -n $2" \
		"ib_write_bw -F --report_gbits -s $1 -n $2 localhost" |
		awk -v s="$1" '$1 == s && NF >= 5 { printf "%.2f\n", $4 * 125 }'
}

bw_ucx() # overall bandwidth: MiB/s in the tool's words
{
	local how=short args
	local n=$2
	# 512 B to 64 KiB of it go 10 to 100 times slower: as long a run needs fewer
	[ "$1" -le 64 ] || { how=zcopy n=$(($2 / 20 + 100)); }
	args="ucx_perftest -t put_bw -x rc_verbs -d mlx5_0:1 -s $1 -n $n -w 20 -f -D $how -p 13999"
	UCX_LOG_LEVEL=error server_client "ucx_perftest -p 13999" "$args localhost" |
		awk '/^ *[0-9]/ { v = $6 } END { if (v != "") printf "%.2f\n", v * 1.048576 }'
}

echo "size,gdr_MBps,ib_write_bw_MBps,ucx_MBps,gdr_min max" >"$out/bw.csv"
printf '%10s %12s %14s %10s\n' size gdr ib_write_bw ucx
for size in ${SIZES:-8 64 512 4096 65536 1048576 4194304}; do
	n=$((size <= 4096 ? 200000 : 1000000000 / size))
	n=${ITERATIONS:-$n}
	interleaved bw "$size" "$n"
	printf '%10s %12s %14s %10s\n' "$size" "${g:--}" "${p:--}" "${u:--}"
	echo "$size,$g,$p,$u,$spread" >>"$out/bw.csv"
	best=$(printf '%s\n%s\n' "${p:-}" "${u:-}" | grep . | sort -gr | head -1)
	[ "$size" != 8 ] || result "put_rate_8 $(awk -v b="${g:-0}" 'BEGIN { printf "%.4f", b / 8 }') Mop/s" \
		"best_peer $(awk -v b="${best:-0}" 'BEGIN { printf "%.4f", b / 8 }')"
	result "put_bandwidth_$size ${g:-missing} MB/s best_peer ${best:-missing}"
done
