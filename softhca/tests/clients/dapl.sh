#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# uDAPL's dtest: sends, writes, reads over RC; with -D it compares. Its connections come about over TCP (scm), on
# both link layers, and over UD (ucm), where there are LIDs.
set -u
. "$(dirname "$0")/lib.sh"
need dtest
own_network
[[ ${CLIENTS_NETWORK:-} == own ]] || skip "its ports are fixed, and no network namespace can be made here"
begin
export DAPL_SCM_NETDEV=lo

# The only ones of this network.
anybody_listens() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ' 0A '
}

# dapl LINK PROVIDER ARGUMENT...
dapl() {
	local how=(dtest -P "ofa-v2-mlx5_0-1$2" "${@:3}") c s i
	local name="dtest ${*:3} $2 on $1" text="DAPL Test Complete. PASSED"
	[[ $name =~ $filter ]] || return 0
	cases=$((cases + 1))
	export SOFTHCA_LINK=$1
	timeout -k 5 "$LIMIT" "$softhca" "${how[@]}" >"$dir/server" 2>&1 </dev/null &
	server=$!
	for ((i = 0; i < 500; i++)); do
		anybody_listens && break
		sleep 0.02
	done
	sleep 0.2 # what it listens to last, nobody sees
	timeout -k 5 "$LIMIT" "$softhca" "${how[@]}" -h "$host" >"$dir/client" 2>&1 </dev/null
	c=$?
	[[ $c == 0 ]] || kill "$server" 2>/dev/null
	wait "$server"
	s=$?
	server=
	why="exit status: client $c, server $s"
	if [[ $c == 0 && $s == 0 ]] && grep -q "$text" "$dir/client" && grep -q "$text" "$dir/server"; then
		echo "ok     $name"
	else
		failed "$name" "${how[*]}"
	fi
}

for way in "eth s" "ib s" "ib u"; do
	read -r link provider <<<"$way"
	for size in 64 4096 65536; do
		dapl "$link" "$provider" -b $size -B 20
	done
	dapl "$link" "$provider" -W -D -b 16384 -B 20
done
finish
