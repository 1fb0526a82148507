#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mutations.sh SOFTHCA POSTER [NUMBER...]: each mistake of the poster (of the receiver) has to be
# reported, first of all by the rule that names it, and end the process with the exit status asked
# for; what is right has to pass without a word. Every rule has a mistake and a line in the manual.
set -u
softhca=$1
poster=$2
shift 2
dir=$(mktemp -d "${TMPDIR:-/tmp}/softhca-strict.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT

# One mistake: says what is wrong, in $dir/NUMBER.bad.
check() { # NUMBER RULE TEXT
	local n=$1 rule=$2 text=$3 status got
	timeout -k 5 $((60 * ${TEST_SLOW:-1})) "$softhca" --strict=1 --error-exitcode=86 "$poster" "$n" >"$dir/$n" 2>&1
	status=$?
	got=$(sed -n 's/^softhca\[[0-9]*\]: strict: \([a-z-]*\): .*/\1/p' "$dir/$n" | head -n 1)
	if [[ $rule == - ]]; then
		[[ $status == 0 && -z $got && ! -s $dir/$n ]] && return
	else
		[[ $status == 86 && $got == "$rule" ]] && return
	fi
	{
		echo "FAILED $n ($text): exit status $status, first rule \"$got\", not \"$rule\""
		sed 's/^/    /' "$dir/$n"
	} >"$dir/$n.bad"
}

"$poster" --list >"$dir/list" || exit 1
[[ $# == 0 ]] || grep -E "^($(IFS='|' && echo "$*")) " "$dir/list" >"$dir/some"
[[ $# == 0 ]] || mv "$dir/some" "$dir/list"
tree=$(cd "$(dirname "$0")/../../.." && pwd)
for rule in $(sed -n 's/^RULE([A-Z_]*, "\([a-z-]*\)".*/\1/p' "$tree/softhca/strict/strict_rules.def"); do
	grep -q "\"$rule\")" "$tree"/softhca/tests/{strict,silicon}/*.def ||
		echo "FAILED: no mistake for rule $rule" >>"$dir/rules.bad"
	grep -q "^| \`$rule\` | " "$tree/docs/softhca.md" ||
		echo "FAILED: docs/softhca.md lacks rule $rule" >>"$dir/rules.bad"
done
jobs=0
while read -r n rule text; do
	check "$n" "$rule" "$text" &
	# Most of the time they wait.
	((++jobs % 6)) || wait
done <"$dir/list"
wait
cat "$dir"/*.bad 2>/dev/null
echo "$(wc -l <"$dir/list") programs, $(find "$dir" -name '*.bad' | wc -l) failed"
! ls "$dir"/*.bad >/dev/null 2>&1
