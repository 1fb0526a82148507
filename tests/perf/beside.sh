# SPDX-License-Identifier: BSD-3-Clause
# Beside others: a put and quiet, and half of a ping-pong of signals, of two PEs by mapped memory and by queues: alone;
# beside a halo exchange of 4 PEs ("job"), by mapped memory and by queues (JOBS), whose waits give cores away; beside
# SPINNERS (two for each core) threads that want the cores for good. Medians of 7 kernels of gdr_perf, whose figure is
# the mean of a kernel's calls.

LIMIT=${LIMIT:-600} # beside four spinners by queues two minutes were too short
spinners=${SPINNERS:-$(($(nproc) * 2))}
echo "spinners,transport,what,us" >"$out/beside.csv"
printf '%9s %10s %28s %12s\n' spinners transport "what" us
for n in 0 ${JOBS-job_p2p job_nic} "$spinners"; do
	pids=()
	case $n in
	job_*)
		GDR_TRANSPORTS=${n#job_} LIMIT=$((2 * LIMIT)) pes 4 "$bin/samples/halo_exchange" -q -o "" -i 100000000 \
			>"$out/$n.log" 2>&1 &
		pids=($!)
		sleep 5 # it is past its start
		;;
	*)
		for ((i = 0; i < n; i++)); do
			sh -c 'while :; do :; done' &
			pids+=($!)
		done
		;;
	esac
	for transport in p2p nic; do
		GDR_TRANSPORTS=$transport pes 2 "$bin/tests/perf/gdr_perf" p_quiet signal 2>>"$out/gdr.log" |
			awk '$1 == "RESULT" { print $2, $3 / 1000 }' | while read -r what us; do
			printf '%9s %10s %28s %12s\n' "$n" "$transport" "$what" "$us"
			echo "$n,$transport,$what,$us" >>"$out/beside.csv"
			result "beside_${n}_${transport}_$what $us us"
		done
		[ "${PIPESTATUS[0]}" = 0 ] || echo "beside $n spinners by $transport: gdr_perf did not end well, see $out/gdr.log"
	done
	for pid in "${pids[@]}"; do
		pkill -P "$pid" 2>/dev/null # the launcher below pes(), or nobody
		kill "$pid"
	done
	wait
done
