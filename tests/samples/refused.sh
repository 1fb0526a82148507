#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# refused.sh ALLREDUCE HASH KV_TRANSFER [HALO_EXCHANGE]: an option that a sample does not take, or a value of it, is
# named; the usage behind that prints the default, not the value.
set -u
bad=0
# program, text, arguments
refused() {
	local program=$1 text=$2 status
	shift 2
	said=$("$program" "$@" 2>&1 >/dev/null)
	status=$?
	if [[ $status != 2 ]] || ! grep -qF -- "$text" <<<"$said"; then
		echo "FAILED: $program $*: status $status, and nothing says: $text"
		echo "$said"
		bad=1
	fi
}
allreduce=$1 hash=$2 kv=$3 halo=${4-}
if [[ $halo ]]; then
	refused "$halo" '-n takes a number, 4..16384, and not "3"' -n 3
	refused "$halo" '-i takes a number, 1..100000000, and not "12x"' -q -i 12x
	refused "$halo" '"more" is no option' more
	refused "$halo" "'x'" -x
fi
refused "$allreduce" '-m takes a number, 4..1073741824, and not ""' -m ''
refused "$allreduce" '-r takes a number, 1..1000000, and not "0"' -r 0
refused "$allreduce" '-a takes direct, ring, one or two, and not "tree"' -a tree
refused "$hash" '"--wide" is no option' --wide
refused "$hash" '-k takes a number' -k
refused "$hash" 'and not "-5"' -k -5
refused "$kv" '-p takes a multiple of 64, and not 100' -p 100
refused "$kv" '-r takes a number, 1..4000, and not "5000"' -r 5000
refused "$kv" '1..4000 (8)' -r 5000
exit $bad
