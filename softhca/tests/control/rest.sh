#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rest.sh SOFTHCA PROGRAM [PROCESSES TIMES]: an idle device and the first doorbell. With numbers
# only that, so often; without them twice in each of two processes, and what else can
# happen. Where the kernel refuses userfaultfd the engine looks every 2 ms, and the times
# alone count.
set -u
softhca=$1 program=$2
tmp=$(mktemp -d) || exit 1
chmod 777 "$tmp"
trap 'rm -rf "$tmp"' EXIT
bad=0
export SOFTHCA_STRICT=0
began=$SECONDS
fail() { echo "BAD  $* (after $((SECONDS - began)) s, load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores)"; bad=1; }

counted() { # FILE COUNTER: its sum over all processes
	awk -v c="$2" '{ for (i = 1; i < NF; i++) if ($i == c) n += $(i + 1) } END { print n + 0 }' "$1"
}

# What the device counted: nothing may have been missed; and, if given, so many trapped, which is
# half of what there is: on a busy machine the engine may come to rest too late.
check_counts() { # NAME [TRAPPED]
	local f=$tmp/$1 trapped missed rests
	trapped=$(counted "$f" doorbells_trapped) missed=$(counted "$f" doorbells_missed)
	rests=$(counted "$f" engine_rests)
	echo "$1: $rests rests, $trapped doorbells trapped, $missed missed, $(counted "$f" engine_sleeps)" \
		"sleeps, $(counted "$f" doorbells_uar) doorbells by registers, $(counted "$f" doorbells_sweep) by" \
		"records, of $(grep -c . "$f") processes"
	[ "$missed" = 0 ] || fail "$1: doorbells that the trap did not see"
	[ "$rests" != 0 ] || { echo "note: no userfaultfd here"; return; }
	[ -z "${2:-}" ] || [ "$trapped" -ge "$2" ] || fail "$1: $trapped of $2 doorbells trapped"
}

# Median and longest time: a rest that is not interrupted takes 20 ms; a busy machine may add
# to the longest.
first() { # NAME PROCESSES TIMES [COMMAND...]
	local name=$1 procs=$2 times=$3 got
	shift 3
	got=$(SOFTHCA_STATS=$tmp/$name "$@" "$softhca" "$program" first "$procs" "$times") ||
		fail "$name: status $?"
	echo "$name: median and longest, us: $got"
	[ "${got% *}" -le "${LIMIT_US:-1000000}" ] || fail "$name: half of the first doorbells took over ${LIMIT_US:-1000000} us"
	check_counts "$name" $((procs * times / 2))
}

if [ $# = 4 ]; then
	LIMIT_US=2000
	first many "$3" "$4"
	exit $bad
fi
(
	first plain 2 2
	exit $bad
) &
pids=$!
(
	SOFTHCA_STATS=$tmp/cases "$softhca" "$program" cases || fail "cases: status $?"
	check_counts cases 5
	exit $bad
) &
pids+=" $!"
(
	SOFTHCA_STATS=$tmp/gpu "$softhca" "$program" gpu || fail "gpu: status $?"
	check_counts gpu
	[ "$(counted "$tmp/gpu" doorbells_trapped)" -le 1 ] || fail "gpu: pages trapped beside a GPU"
	exit $bad
) &
pids+=" $!"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null &&
	setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$program"; then
	(
		first unprivileged 1 2 setpriv --reuid=65534 --regid=65534 --clear-groups
		exit $bad
	) &
	pids+=" $!"
fi
for pid in $pids; do wait "$pid" || bad=1; done
exit $bad
