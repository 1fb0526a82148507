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
[ "$status" = 1 ] || exit 1
case $out in *"$text"*) ;; *) exit 1 ;; esac
case $out in *"PE 0 of"*) exit 1 ;; esac
