# SPDX-License-Identifier: BSD-3-Clause
# Beside threads that spin: a put and quiet, and half of a ping-pong of signals, of two PEs by mapped memory and by
# queues, without and with SPINNERS (two for each core) threads that want the cores for good. Medians of gdr_perf.

LIMIT=${LIMIT:-600} # beside four spinners by queues two minutes were too short
spinners=${SPINNERS:-$(($(nproc) * 2))}
echo "spinners,transport,what,us" >"$out/beside.csv"
printf '%9s %10s %28s %12s\n' spinners transport "what" us
for n in 0 "$spinners"; do
	pids=()
	for ((i = 0; i < n; i++)); do
		sh -c 'while :; do :; done' &
		pids+=($!)
	done
	for transport in p2p nic; do
		GDR_TRANSPORTS=$transport pes 2 "$bin/tests/perf/gdr_perf" p_quiet signal 2>>"$out/gdr.log" |
			awk '$1 == "RESULT" { print $2, $3 / 1000 }' | while read -r what us; do
			printf '%9s %10s %28s %12s\n' "$n" "$transport" "$what" "$us"
			echo "$n,$transport,$what,$us" >>"$out/beside.csv"
			result "beside_${n}_${transport}_$what $us us"
		done
		[ "${PIPESTATUS[0]}" = 0 ] || echo "beside $n spinners by $transport: gdr_perf did not end well, see $out/gdr.log"
	done
	[ "$n" = 0 ] || kill "${pids[@]}"
	wait
done
