#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# dlsym(RTLD_NEXT) of a library behind softhca means what it means without it.
# usage: hook.sh LIBSOFTHCA HOOK
status=0
LD_PRELOAD="$1 $2" /bin/true || status=$?
echo "status $status, should be 42"
[ $status = 42 ]
