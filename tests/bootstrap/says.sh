#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# says.sh TEXT COMMAND...: COMMAND must succeed with TEXT in its output.
set -u
text=$1
shift
out=$("$@" 2>&1)
status=$?
echo "$out"
[ "$status" = 0 ] || exit "$status"
case $out in *"$text"*) ;; *)
	echo "says.sh: it does not say '$text'"
	exit 1
	;;
esac
