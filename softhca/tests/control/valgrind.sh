#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs under valgrind: no access error, no leak.
set -u
library=$2
shift 2
command -v valgrind >/dev/null || { echo "skip: valgrind is not installed"; exit 77; }
bad=0
for program in "$@"; do
	LD_PRELOAD=$library MAILBOX_ROUNDS=300 timeout -k 5 $((140 * ${TEST_SLOW:-1})) valgrind -q --error-exitcode=9 \
		--leak-check=full --errors-for-leak-kinds=definite --fair-sched=yes \
		"$program" || { echo "FAILED: $program"; bad=1; }
done
exit $bad
