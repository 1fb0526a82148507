# SPDX-License-Identifier: BSD-3-Clause
# Bring-up: worst PE of each job, median over the rounds.

echo "pes,init_ms,rss_kib,queue_kib,fds" >"$out/init.csv"
printf '%6s %10s %12s %12s %6s %22s\n' PEs 'init ms' 'RSS KiB/PE' 'queues KiB' fds 'growth per added peer'
last_n=0 last_rss=0
for n in 2 4 8 16; do
	: >"$out/init.rows"
	for ((round = 0; round < rounds; round++)); do
		GDR_TRANSPORTS=nic pes "$n" "$bin/tests/perf/init" 2>>"$out/gdr.log" >>"$out/init.rows"
	done
	read -r ms _ < <(awk '{ print $2 }' "$out/init.rows" | median)
	read -r rss _ < <(awk '{ print $3 }' "$out/init.rows" | median)
	read -r _ _ _ queue fds <"$out/init.rows"
	growth="-"
	if [ "$last_n" -gt 0 ]; then
		growth="$(((${rss:-0} - last_rss) / (n - last_n))) KiB"
		result "init_memory_per_added_peer_at_$n ${growth% KiB} KiB"
	fi
	printf '%6s %10s %12s %12s %6s %22s\n' "$n" "${ms:--}" "${rss:--}" "${queue:--}" "${fds:--}" "$growth"
	echo "$n,$ms,$rss,$queue,$fds" >>"$out/init.csv"
	result "init_${n}_pes ${ms:-missing} ms"
	result "init_${n}_pes_memory ${rss:-missing} KiB"
	last_n=$n last_rss=${rss:-0}
done
