#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# killed.sh SOFTHCA: one of two processes is killed amid traffic. The other learns it by its own
# completions and ends, and nothing of the dead one is left: no file, no shared memory, no socket.
set -u
softhca=$1
[ "$(id -u)" = 0 ] || { echo "SKIP: must run as root: it makes a network namespace"; exit 77; }
for c in unshare ip ib_send_bw; do
	command -v "$c" >/dev/null || { echo "SKIP: no $c here"; exit 77; }
done
if [ "${IN_NAMESPACE:-0}" = 0 ]; then
	unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here"; exit 77; }
	exec env IN_NAMESPACE=1 unshare -n "$0" "$@"
fi
ip link set lo up
bad=0
litter() {
	find /dev/shm /tmp -maxdepth 1 \( -name '*softhca*' -o -name '*uverbs*' \) \
		! -name 'softhca-strict.*' | sort # strict: another test's folder
	# Sockets of this namespace: none but those of live processes.
	grep -h . /proc/net/unix | grep -o '@.*softhca.*'
	awk '$2 ~ /:12B7$/ { print "UDP", $2 }' /proc/net/udp /proc/net/udp6 2>/dev/null
}
before=$(litter)

# kill_one VICTIM: 0 the server, 1 the client
kill_one() {
	local port=18600 pids=() status
	"$softhca" ib_send_bw -b -x 0 -D 60 -p $port >/dev/null 2>&1 &
	pids+=($!)
	for _ in $(seq $((600 * ${TEST_SLOW:-1}))); do
		grep -q ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6 && break
		sleep 0.05
	done
	"$softhca" ib_send_bw -b -x 0 -D 60 -p $port 127.0.0.1 >/dev/null 2>&1 &
	pids+=($!)
	# Both have an engine; then some time for the connection.
	for pid in "${pids[@]}"; do
		for _ in $(seq $((600 * ${TEST_SLOW:-1}))); do
			grep -qsx softhca /proc/"$pid"/task/*/comm && break
			sleep 0.05
		done
	done
	sleep 1
	kill -0 "${pids[0]}" && kill -0 "${pids[1]}" || { echo "BAD  no traffic to begin with"; bad=1; }
	kill -9 "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	for _ in $(seq $((800 * ${TEST_SLOW:-1}))); do
		kill -0 "${pids[$((1 - $1))]}" 2>/dev/null || break
		sleep 0.05
	done
	if kill -0 "${pids[$((1 - $1))]}" 2>/dev/null; then
		echo "BAD  process $((1 - $1)) still runs 40 s after its peer's death"
		kill -9 "${pids[$((1 - $1))]}"
		bad=1
	fi
	wait "${pids[$((1 - $1))]}" 2>/dev/null
	status=$?
	[ $status != 0 ] || { echo "BAD  process $((1 - $1)) ended as if all were well"; bad=1; }
	[ "$(litter)" = "$before" ] || { echo "BAD  left behind:"; diff <(echo "$before") <(litter); bad=1; }
	echo "killed process $1, the other ended with status $status"
}

kill_one 0
kill_one 1
exit $bad
