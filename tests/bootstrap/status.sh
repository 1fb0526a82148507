#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# status.sh CODE COMMAND...: COMMAND must end with exit status CODE within 15 s on a quiet machine.
set -u
want=$1
shift
begin=$(date +%s)
"$@"
status=$?
took=$(($(date +%s) - begin))
[ "$status" = 77 ] && exit 77
echo "status.sh: status $status after $took s, expected $want"
[ "$status" = "$want" ] && [ "$took" -le $((15 * ${TEST_SLOW:-1})) ]
