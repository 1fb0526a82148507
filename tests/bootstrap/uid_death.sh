#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# uid_death.sh HOW PE PLAIN BOOT_TEST: PE of three plain processes dies or stops before a barrier. kill, exit0: the
# others end at once with "a peer is lost" and name it. stop: with a time-out that names it. PE 0 has the hub.
# HOW missing: PE is not started at all. The process with the hub gives up first, and all tell what it does.
set -u
how=$1
pe=$2
plain=$3
test=$4
out=$(mktemp) || exit 1
slow=${TEST_SLOW:-1}
trap 'rm -f "$out"' EXIT
begin=$(date +%s)
case $how in
stop)
	export LIMIT=8
	limit=$((12 * slow))
	"$plain" 3 "$test" rounds 3 timeout $((2000 * slow)) fate stop "$pe" barrier expect -20 >"$out" 2>&1
	if [ "$pe" = 0 ]; then
		text="unknown, for PE 0, whose process has the job's hub, does not answer either"
	else
		text="PEs that had not entered it: $pe;"
	fi
	;;
missing)
	limit=$((5 * slow))
	others=$(seq 0 2 | grep -v "$pe")
	# shellcheck disable=SC2016 # of the process
	ONLY=$others "$plain" 3 sh -c '[ "$RANK" = "${ID_RANK:-0}" ] || set -- 60000; exec "$0" open "$@"' "$test" \
		$((1500 * slow)) >"$out" 2>&1
	text="missing: PE $pe; check that as many"
	;;
*)
	limit=$((5 * slow))
	"$plain" 3 "$test" rounds 3 fate "$how" "$pe" barrier expect -21 >"$out" 2>&1
	text="the collective cannot end: PE $pe is dead or cut off"
	;;
esac
took=$(($(date +%s) - begin))
named=$(grep -c "$text" "$out")
wrong=$(grep -c 'boot_test.*expected' "$out")
if [ "$named" != 2 ] || [ "$wrong" != 0 ] || [ "$took" -gt "$limit" ]; then
	cat "$out"
	echo "uid_death.sh: $how $pe: $named of 2 named it, after $took s"
	exit 1
fi
