#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# death.sh HOW N LAUNCHER... BOOT_TEST: PE 1 of N dies or stops before a
# barrier. kill, exit0, exit3: the job must end within 10 s, not with success.
# stop: every other PE must end with a time-out that names PE 1; the launcher
# would then wait for the stopped PE for ever, so this script ends it.
set -u
how=$1
n=$2
shift 2
out=$(mktemp) || exit 1
slow=${TEST_SLOW:-1}
launcher=
# The launcher is one of ours or srun, and both take their job with them.
end_launcher() {
	[ -n "$launcher" ] || return 0
	kill -TERM "$launcher" 2>/dev/null
	sleep 0.5
	kill -TERM "$launcher" 2>/dev/null
	(sleep $((8 * slow)) && kill -KILL "$launcher" 2>/dev/null) &
	wait "$launcher" 2>/dev/null
	launcher=
}
trap 'end_launcher; rm -f "$out"' EXIT
trap 'exit 143' INT TERM HUP

bad() {
	cat "$out"
	echo "death.sh: $how: $*"
	exit 1
}

named() {
	grep -c 'PEs that had not entered it: 1;' "$out"
}

if [ "$how" = stop ]; then
	"$@" timeout $((3000 * slow)) rounds 3 fate stop 1 barrier expect -20 >"$out" 2>&1 &
	launcher=$!
	left=$((150 * slow))
	while [ "$(named)" -lt $((n - 1)) ]; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || bad "only $(named) of $((n - 1)) PEs named the stopped one"
		kill -0 "$launcher" 2>/dev/null || bad "the job ended by itself"
		sleep 0.1
	done
	exit 0
fi

begin=$(date +%s)
# A code that no PE gets, so that none ends with success.
"$@" timeout $((25000 * slow)) rounds 3 fate "$how" 1 barrier expect -99 >"$out" 2>&1
status=$?
took=$(($(date +%s) - begin))
[ "$status" = 77 ] && cat "$out" && exit 77
[ "$status" != 0 ] || bad "the launcher reports success"
[ "$took" -le $((10 * slow)) ] || bad "the job ended only after $took s"
! grep -q 'code 0, expected' "$out" || bad "a barrier passed without the dead PE"
grep -q 'signal\|[Kk]illed\|exit' "$out" || bad "the launcher tells no cause"
echo "death.sh: $how: ended after $took s with status $status"
