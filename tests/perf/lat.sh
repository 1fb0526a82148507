# SPDX-License-Identifier: BSD-3-Clause
# Latency: half of a ping-pong, median of each run, median over the rounds.

lat_gdr()
{
	GDR_TRANSPORTS=nic two_pes "$bin/tests/perf/p2p" lat "$1" "$2" 2>"$out/gdr.log" | awk '{ print $2 }'
}

lat_perftest() # t_typical
{
	server_client "ib_write_lat -F -s $1 -n $2" "ib_write_lat -F -s $1 -n $2 localhost" |
		awk -v s="$1" '$1 == s && NF >= 6 { print $5 }'
}

lat_ucx() # 50th percentile of put_lat
{
	local how=short args
	[ "$1" -le 64 ] || how=zcopy
	args="ucx_perftest -t put_lat -x rc_verbs -d mlx5_0:1 -s $1 -n $2 -w 20 -f -D $how -p 13999"
	UCX_LOG_LEVEL=error server_client "ucx_perftest -p 13999" "$args localhost" |
		awk '/^ *[0-9]/ { v = $2 } END { print v }'
}

echo "size,gdr_us,ib_write_lat_us,ucx_us,gdr_min max" >"$out/lat.csv"
printf '%10s %12s %14s %10s\n' size gdr ib_write_lat ucx
for size in ${SIZES:-8 64 512 4096 65536 1048576 4194304}; do
	n=$((size <= 65536 ? 4000 : 400))
	interleaved lat "$size" "${ITERATIONS:-$n}"
	printf '%10s %12s %14s %10s\n' "$size" "${g:--}" "${p:--}" "${u:--}"
	echo "$size,$g,$p,$u,$spread" >>"$out/lat.csv"
	best=$(printf '%s\n%s\n' "${p:-}" "${u:-}" | grep . | sort -g | head -1)
	result "put_latency_$size ${g:-missing} us best_peer ${best:-missing}"
done
