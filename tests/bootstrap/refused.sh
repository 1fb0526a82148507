#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# refused.sh TEXT COMMAND...: COMMAND must fail with the advice TEXT in its
# output, and no process of it may have run as a PE.
set -u
text=$1
shift
out=$("$@" 2>&1)
status=$?
echo "$out"
[ "$status" = 77 ] && exit 77
bad() {
	echo "refused.sh: $*"
	exit 1
}
[ "$status" = 1 ] || bad "status $status, not 1"
case $out in *"$text"*) ;; *) bad "it does not say '$text'" ;; esac
case $out in *"PE 0 of"*) bad "a process ran as a PE" ;; esac
