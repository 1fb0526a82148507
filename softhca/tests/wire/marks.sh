#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# marks.sh SOFTHCA WIRE_PEER: what the network sees of a packet besides its addresses. Between two hosts
# (namespaces joined by veth) the traffic class with DSCP and ECN and the UDP source port are on the
# wire as the address vector, the flow label or the queue pair numbers have it; what arrives marked
# "congestion experienced" is counted, packet by packet.
set -u
me=marks
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../tests/launch/lib.sh"
. "$here/lib.sh"
softhca=$1 peer=$2
need_root "it makes network namespaces"
need ip iproute2
need setpriv util-linux
need tcpdump tcpdump
need python3 python3
make_dir marks
trap_all
two_hosts 4300

# The class of what x sends, DSCP 4: not congested. That of what y sends: DSCP 26, as its mark says.
x_class=0x10 ect=0x6a ce=0x6b
on_x=(-c $x_class)

# The same operations each time: wire_peer's list of the service.
run() { # CLASS-OF-Y ARGUMENT...
	rm -f "$dir/stats"
	local -x SOFTHCA_STATS=$dir/stats
	capture "$dir/cap" across -c "$1" -m 1024 -s 3000 "${@:2}"
}

# marked N: of all packets received, by both, so many carried the mark.
marked() {
	local n
	n=$(sed -E 's/.* ecn_marked ([0-9]+) .*/\1/' "$dir/stats" | sort -n | tail -n 1)
	[ "$(wc -l <"$dir/stats")" = 2 ] && [ "$n" = "$1" ] &&
		[ "$(sed -E 's/.* ecn_marked ([0-9]+) .*/\1/' "$dir/stats" | sort -n | head -n 1)" = 0 ] ||
		{ echo "marked packets: want $1"; cat "$dir/stats"; return 1; }
}

# seen FROM-X FROM-Y CLASS-OF-Y PORT-OF-X PORT-OF-Y: what was captured, and what was counted.
seen() {
	local n
	"$here/marks.py" "$dir/cap" "$1" $x_class "$4" || return 1
	n=$("$here/marks.py" "$dir/cap" "$2" "$3" "$5") || { echo "$n"; return 1; }
	[ "$3" = $ce ] || n=0
	marked "$n"
}

v4="10.98.0.1 10.98.0.2" v6="fd98::1 fd98::2"
each() { # NAME ADDRESSES ARGUMENT...
	local what=$1 from=$2
	shift 2
	plain=()
	check "$what: ports from queue pair numbers" run $ect -t rc "$@"
	check "   as captured" seen $from $ect qpns qpns
	check "$what: ports from a flow label, congestion" run $ce -t rc -f 0x9abcd "$@"
	check "   as captured and counted" seen $from $ce label:0x9abcd label:0x9abcd
	check "$what: UC" run $ce -t uc -f 0x00777 "$@"
	check "   as captured and counted" one_way $from $ce label:0x777
	check "$what: UD" run $ce -t ud -f 0x12345 "$@"
	check "   as captured and counted" one_way $from $ce label:0x12345
	check "$what: UD without a flow label" run $ect -t ud "$@"
	check "   as captured" one_way $from $ect any
	plain=("${without_raw[@]}")
	check "$what: without CAP_NET_RAW, congestion" run $ce -t rc "$@"
	check "   as captured and counted" seen $from $ce 4791 4791
}

# one_way FROM-X FROM-Y CLASS PORT: nothing comes back.
one_way() {
	local n
	n=$("$here/marks.py" "$dir/cap" "$2" "$3" "$4") || { echo "$n"; return 1; }
	[ "$3" = $ce ] || n=0
	marked "$n"
}

each IPv4 "$v4"
each IPv6 "$v6" -g 1
# The judge judges.
check "another class is seen" refused "$here/marks.py" "$dir/cap" fd98::2 $ect 4791
check "another port is seen" refused "$here/marks.py" "$dir/cap" fd98::2 $ce qpns
exit $bad
