#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric's fi_pingpong over its provider `verbs`: reliable datagrams that it makes of UD itself, compared
# by it. (Its other endpoints want a connection manager.)
set -u
. "$(dirname "$0")/lib.sh"
need fi_pingpong fi_info
own_network
begin

# What the library finds on the device.
finds() { # LINK
	cases=$((cases + 1))
	why="no UD endpoint of mlx5_0"
	: >"$dir/server"
	if SOFTHCA_LINK=$1 timeout -k 5 "$LIMIT" "$softhca" fi_info -p verbs >"$dir/client" 2>&1 &&
		grep -q 'domain: mlx5_0-dgram' "$dir/client" &&
		grep -q 'protocol: FI_PROTO_IB_UD' "$dir/client"; then
		echo "ok     fi_info on $1"
	else
		failed "fi_info on $1" "fi_info -p verbs"
	fi
}

# fabric LINK SIZE MESSAGES: both sides print a line with as many sent as came back.
fabric() {
	local name="fi_pingpong $2 on $1" c s how=(-p "verbs;ofi_rxd" -e rdm -c -I "$3" -S "$2")
	[[ $name =~ $filter ]] || return 0
	cases=$((cases + 1))
	port=$((port + 1))
	export SOFTHCA_LINK=$1
	timeout -k 5 "$LIMIT" "$softhca" fi_pingpong "${how[@]}" -B "$port" >"$dir/server" 2>&1 \
		</dev/null &
	server=$!
	for ((i = 0; i < 500; i++)); do
		listens "$port" && break
		sleep 0.02
	done
	timeout -k 5 "$LIMIT" "$softhca" fi_pingpong "${how[@]}" -P "$port" "$host" >"$dir/client" \
		2>&1 </dev/null
	c=$?
	[[ $c == 0 ]] || kill "$server" 2>/dev/null
	wait "$server"
	s=$?
	server=
	why="exit status: client $c, server $s"
	if [[ $c == 0 && $s == 0 ]] && counted "$3" "$dir/client" && counted "$3" "$dir/server"; then
		echo "ok     $name"
	else
		failed "$name" "fi_pingpong ${how[*]}"
	fi
}

counted() { # MESSAGES FILE
	why="$2: not $1 messages each way"
	grep -qE "^[0-9]+[km]? +$1 +=$1 " "$2"
}

for link in eth ib; do
	finds $link
	for size in 1 64 4096 65536; do
		fabric $link $size 100
	done
done
fabric eth 1048576 5
finish
