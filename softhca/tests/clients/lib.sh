# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the scripts of this directory: runs programs that others wrote as server and client on
# softhca, in a network namespace of this test alone, and reads what they print. Bash.
#
#   FAMILY.sh SOFTHCA [quick|full] [FILTER]
#
# quick is a few cases of the family, full its whole matrix; FILTER, a regular expression, picks
# cases by name. RDMA_CORE=DIR runs them on another rdma-core: a build tree (bin, lib) or the prefix
# of an installation. LIMIT=SECONDS bounds each case (60).
# shellcheck shell=bash disable=SC2034

softhca=$1
profile=${2:-full}
filter=${3:-.}
LIMIT=$((${LIMIT:-60} * ${TEST_SLOW:-1}))
bad=0
cases=0
host=127.0.0.1
on_server=() # words before the server's and the client's command
on_client=()
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
	echo "skip: $*"
	exit 77
}

need() { # COMMAND...
	local c
	for c in "$@"; do
		command -v "$c" >/dev/null || skip "no $c here: tools/install-deps"
	done
}

full() { [[ $profile == full ]]; }

# Starts the calling script again in a network namespace with loopback alone. Where none can be made,
# ports drawn at random keep tests apart that run at the same time.
own_network() {
	port=10000
	[[ -z ${CLIENTS_NETWORK:-} ]] || return 0
	export CLIENTS_NETWORK=own
	local how
	for how in -n -rn; do
		unshare $how ip link set lo up 2>/dev/null || continue
		# shellcheck disable=SC2016 # for the inner shell
		exec unshare $how bash -c 'ip link set lo up; exec "$0" "$@"' "$0" "$softhca" \
			"$profile" "$filter"
	done
	export CLIENTS_NETWORK=shared
	port=$((20000 + RANDOM % 12000))
}

server=
cleanup=() # functions of the family
clean_up() {
	local f
	[[ -z $server ]] || kill "$server" 2>/dev/null
	for f in "${cleanup[@]}"; do "$f"; done
	rm -rf "$dir"
}

begin() { # the last word of the set-up
	dir=$(mktemp -d "${TMPDIR:-/tmp}/softhca-clients.XXXXXX") || exit 1
	trap clean_up EXIT
	trap 'exit 143' TERM INT HUP
	use_rdma_core
}

# Another rdma-core: programs of its own, libraries for those and for all others. A library that
# would still come from elsewhere is an error of this test's set-up.
use_rdma_core() {
	[[ -n ${RDMA_CORE:-} ]] || return 0
	local lib path=
	for lib in lib lib64 lib/"$(gcc -print-multiarch 2>/dev/null)"; do
		[[ -e $RDMA_CORE/$lib/libibverbs.so.1 ]] && path=$RDMA_CORE/$lib
	done
	[[ -n $path ]] || skip "no libibverbs.so.1 below RDMA_CORE=$RDMA_CORE"
	export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export PATH=$RDMA_CORE/bin:$PATH
	if ! ldd "$(command -v ibv_devinfo)" | grep -q "libibverbs.so.1 => $path"; then
		echo "FAILED: ibv_devinfo does not take libibverbs of $path"
		exit 1
	fi
	echo "rdma-core: $(readlink -f "$path/libibverbs.so.1")"
}

listens() { # PORT
	"${on_server[@]}" cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
		grep -q ":$(printf %04X "$1") .* 0A "
}

# pair PROGRAM ARGUMENT...: as server, and with the server's address behind it as client. Output in
# $dir/server and $dir/client. True when both end well in time.
pair() {
	local client c s i
	port=$((port + 1))
	client=("$@" -p "$port" "$host")
	[[ $1 == ucx_perftest ]] && client=("$1" "$host" "${@:2}" -p "$port")
	timeout -k 5 "$LIMIT" "${on_server[@]}" "$softhca" "$@" -p "$port" >"$dir/server" 2>&1 \
		</dev/null &
	server=$!
	# The server says nothing when it listens: its port does.
	for ((i = 0; i < 500; i++)); do
		listens "$port" && break
		kill -0 "$server" 2>/dev/null || break
		sleep 0.02
	done
	timeout -k 5 "$LIMIT" "${on_client[@]}" "$softhca" "${client[@]}" >"$dir/client" 2>&1 \
		</dev/null
	c=$?
	[[ $c == 0 ]] || kill "$server" 2>/dev/null # it may wait for the client for ever
	wait "$server"
	s=$?
	server=
	[[ $c == 0 && $s == 0 ]] && return
	why="exit status: client $c, server $s"
	return 1
}

# try NAME CHECK PROGRAM ARGUMENT...: the pair, then CHECK FILE on the output of both. CHECK says in
# `why` what it misses.
try() {
	local name=$1 check=$2
	shift 2
	[[ $name =~ $filter ]] || return 0
	cases=$((cases + 1))
	local i
	for i in 1 2 3; do
		why=
		if pair "$@" && "$check" "$dir/client" && "$check" "$dir/server"; then
			echo "ok     $name"
			return 0
		fi
		# perftest calibrates its clock and gives up on a busy machine: that says nothing
		# of softhca.
		grep -qsE 'Correlation coefficient|Can.t produce a report' "$dir/client" "$dir/server" || break
	done
	failed "$name" "$*"
}

failed() { # NAME COMMAND
	echo "FAILED $1: $why"
	echo "    $2"
	sed 's/^/    client: /' "$dir/client"
	sed 's/^/    server: /' "$dir/server"
	bad=$((bad + 1))
}

finish() {
	echo "$cases cases, $bad failed"
	if [[ $cases == 0 ]]; then
		echo "FAILED: no case has the name $filter"
		exit 1
	fi
	exit $((bad != 0))
}
