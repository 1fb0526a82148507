#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# pair.sh SOFTHCA [SOFTHCA-OPTION...] PROGRAM [ARGUMENT...]: runs PROGRAM as server and as client
# (the same arguments and "localhost") on softhca; both have to succeed.
set -u
softhca=$1
shift
options=()
while [[ $1 == --* ]]; do
	options+=("$1")
	shift
done
if ! command -v "$1" >/dev/null; then
	echo "skip: $1 is not installed"
	exit 77
fi

# A port of our own, so that tests can run at the same time.
port=$((20000 + $$ % 20000))
case $1 in
ibv_* | ib_* | ucx_perftest) args=("$@" -p "$port") ;;
*) args=("$@") ;;
esac
client=("${args[@]}" localhost)
[[ $1 == ucx_perftest ]] && client=("$1" localhost "${args[@]:1}")

timeout -k 5 60 "$softhca" "${options[@]}" "${args[@]}" &
server=$!
# The server says nothing when it listens: its port does.
for _ in $(seq 100); do
	grep -q ":$(printf %04X "$port") .* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null && break
	sleep 0.1
done
timeout -k 5 60 "$softhca" "${options[@]}" "${client[@]}"
c=$?
wait "$server"
s=$?
echo "client $c, server $s"
[[ $c == 0 && $s == 0 ]]
