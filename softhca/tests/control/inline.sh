#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# inline.sh SOFTHCA PROGRAM: the program passes with polls that do the device's work and without, and
# the counters say which it was.
set -u
softhca=$1 program=$2
stats=$(mktemp) || exit 1
trap 'rm -f "$stats"' EXIT
bad=0

for inline in 1 0; do
	: >"$stats"
	SOFTHCA_INLINE=$inline SOFTHCA_STATS=$stats "$softhca" "$program" || {
		echo "BAD  SOFTHCA_INLINE=$inline: status $?"
		bad=1
	}
	rounds=$(sed -n 's/.* poll_rounds \([0-9]*\) .*/\1/p' "$stats")
	echo "SOFTHCA_INLINE=$inline: ${rounds:=-1} rounds by threads that poll"
	[ "$((rounds > 0))" = $inline ] || bad=1
done
exit $bad
