#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# told.sh ENVIRONMENT LAUNCHER... BOOT_TEST: PE 1 of 3 is killed before a barrier. The launcher reports
# it, and lets the job go on: the others end at once with "a peer is lost", which they say.
set -u
with=$1
shift
out=$(mktemp) || exit 1
slow=${TEST_SLOW:-1}
trap 'rm -f "$out"' EXIT
begin=$(date +%s)
env "$with" LIMIT=60 "$@" timeout $((30000 * slow)) rounds 3 fate kill 1 barrier expect -21 >"$out" 2>&1
status=$?
[ "$status" = 77 ] && cat "$out" && exit 77
took=$(($(date +%s) - begin))
told=$(grep -c 'warning: bootstrap: the launcher reports PE 1 dead' "$out")
if [ "$took" -gt $((29 * slow)) ] || [ "$told" -lt 1 ] || grep 'boot_test\[.*expected' "$out"; then
	cat "$out"
	echo "told.sh: $told were told, ended after $took s"
	exit 1
fi
echo "told.sh: $told PEs were told, ended after $took s"
