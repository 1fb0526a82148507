#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# pyverbs.sh SOFTHCA [RDMA_CORE_SOURCE [TEST...]]: rdma-core's own tests of its Python bindings, which no
# package has, from a source tree of the release that python3-pyverbs is of, or the one that PYVERBS_TESTS
# names. Passes when no test fails, and strict mode reports only what they misuse on purpose.
set -u
softhca=$1
source=${2:-${PYVERBS_TESTS:-}}
shift $(($# < 2 ? $# : 2))

skip() {
	echo "skip: $*"
	exit 77
}

[[ -n $source ]] || skip "no source tree of rdma-core: PYVERBS_TESTS=DIR"
[[ -e $source/tests/run_tests.py ]] || skip "no tests/run_tests.py in $source"
python=/usr/bin/python3 # whose packages are Debian's
"$python" -c 'import pyverbs.device' 2>/dev/null || skip "no python3-pyverbs here"
dir=$(mktemp -d "${TMPDIR:-/tmp}/softhca-pyverbs.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cp -r "$source/tests" "$dir" || exit 1 # Python writes beside its modules
network=()
for how in -n -rn; do
	unshare $how ip link set lo up 2>/dev/null && network=(unshare $how) && break
done
# shellcheck disable=SC2016 # for the inner shell
SOFTHCA_ERROR_EXITCODE=0 timeout -k 5 $((${LIMIT:-280} * ${TEST_SLOW:-1})) "${network[@]}" bash -c \
	'ip link set lo up 2>/dev/null; cd "$0" && exec "$@"' "$dir/tests" "$softhca" "$python" run_tests.py \
	--dev mlx5_0 --gid 0 -v "$@" >"$dir/log" 2>&1 </dev/null

bad=0
while read -r line; do
	echo "FAILED $line"
	bad=1
done < <(grep -E '^(ERROR|FAIL): ' "$dir/log")
# Wrong on purpose: an atomic off its alignment, keys that are gone, of another PD, of less memory.
wrong='atomic-align|key-unknown|key-pd|key-range'
while read -r line; do
	echo "FAILED strict mode: $line"
	bad=1
done < <(grep -oE 'strict: [a-z]+-[a-z-]+: .*' "$dir/log" | cut -c9- | grep -vE "^($wrong):")
grep -E '^Ran [1-9][0-9]* tests' "$dir/log" || bad=1
grep -E '^(OK|FAILED) ?\(' "$dir/log" || bad=1
[[ $bad == 0 ]] || tail -n 100 "$dir/log"
exit $bad
