#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# devices.sh SOFTHCA PROGRAM: two devices, both link layers; then two processes, one on each.
set -u
softhca=$1 program=$2
export SOFTHCA_DEVICES=2
bad=0
for link in eth ib; do
	"$softhca" --link=$link "$program" || bad=1
done
command -v ibv_rc_pingpong >/dev/null || { echo "SKIP: no ibv_rc_pingpong here"; exit 77; }
port=$((21000 + $$ % 20000))
timeout -k 5 30 "$softhca" ibv_rc_pingpong -d mlx5_0 -g 0 -c -n 50 -p $port &
server=$!
for _ in $(seq 100); do
	grep -q ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null && break
	sleep 0.1
done
timeout -k 5 30 "$softhca" ibv_rc_pingpong -d mlx5_1 -g 0 -c -n 50 -p $port localhost || bad=1
wait $server || bad=1
exit $bad
