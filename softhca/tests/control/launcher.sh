#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The launcher: options, exit status, order of preloads, nothing left behind.
set -u
softhca=$1 library=$2
bad=0
dir0=$(mktemp)
check() {
	local what=$1
	shift
	if ! "$@"; then
		echo "FAILED: $what"
		bad=1
	fi
}
status() {
	local want=$1
	shift
	"$@" >/dev/null 2>&1
	[[ $? == "$want" ]]
}

check "help" status 0 "$softhca" --help
check "help lists the variables" grep -q SOFTHCA_STATS <("$softhca" --help)
docs=$(cd "$(dirname "$0")/../../../docs" && pwd)
for name in $("$softhca" --help | grep -oE '^  --[a-z-]+|^  SOFTHCA_[A-Z_]+'); do
	check "$name in the manual" grep -qF -- "$name" "$docs/softhca.md"
	check "$name in the man page" grep -qF -- "$name" <(tr -d '\\' <"$docs/softhca.1")
done
for name in $("$softhca" --help | sed -n '/^SOFTHCA_DEVICE=/,$ s/^  \([a-z0-9-]*\) .*/\1/p'); do
	check "capability $name in the manual" grep -q "^| \`$name" "$docs/softhca.md"
done
check "version" grep -q '^softhca [0-9]' <("$softhca" --version)
check "no command" status 2 "$softhca"
check "a value is judged without one" grep -q 'SOFTHCA_NODES=0 cannot be used' <("$softhca" --nodes=0 2>&1)
check "unknown option" status 2 "$softhca" --no-such-option true
check "an option's value as the next word" test "$("$softhca" --nodes 2 --link ib printenv SOFTHCA_NODES)" = 2
check "a value that is missing" grep -q -- '--nodes: its value is missing' <("$softhca" --nodes 2>&1 </dev/null)
check "unknown command" status 127 "$softhca" no-such-command-here
check "exit status is the command's" status 42 "$softhca" sh -c 'exit 42'
check "preload" test "$("$softhca" printenv LD_PRELOAD | sed 's/.*://')" = "$library"
check "preload keeps others" grep -q ':/nonexistent.so$' \
	<(LD_PRELOAD=/nonexistent.so "$softhca" printenv LD_PRELOAD 2>/dev/null)
check "nested calls add nothing" test "$("$softhca" printenv LD_PRELOAD)" = \
	"$("$softhca" "$softhca" printenv LD_PRELOAD)"
check "silent in other programs" test -z "$("$softhca" true 2>&1)"
check "a script as command" status 3 "$softhca" "$(dirname "$0")/exit3.sh"
check "unknown variables are reported" grep -q SOFTHCA_TYPO \
	<(SOFTHCA_TYPO=1 "$softhca" ibv_devinfo 2>&1)
check "a bad value is refused" status 2 "$softhca" --link=token-ring ibv_devinfo
check "it is named" grep -q 'SOFTHCA_LINK=token-ring' <("$softhca" --link=token-ring true 2>&1)
for wrong in error-exitcode=300 error-exitcode=-1 nodes=0 nodes=two debug=9 debug=1x strict=7 devices=5; do
	said=$("$softhca" --$wrong true 2>&1)
	check "--$wrong is refused" status 2 "$softhca" --$wrong true
	name=$(tr a-z- A-Z_ <<<"${wrong%=*}")
	check "--$wrong is named" grep -qF "SOFTHCA_$name=${wrong#*=} cannot be used: " <<<"$said"
done
for wrong in SOFTHCA_ADDR=foo SOFTHCA_ADDR=127.0.0.1.2 SOFTHCA_NULL=3 SOFTHCA_STRICT=3 SOFTHCA_MAX_MR=big; do
	check "$wrong is refused" status 2 env "$wrong" "$softhca" true
	check "$wrong is named" grep -qF "$wrong cannot be used: " <(env "$wrong" "$softhca" true 2>&1)
done
check "what can be used is not" status 0 env SOFTHCA_ADDR=::1 SOFTHCA_NULL=2 "$softhca" --error-exitcode=255 --nodes=1 \
	--debug=0 --strict=2 true
check "a value of no characters" grep -q -- '--nodes=: its value is missing' <("$softhca" --nodes= true 2>&1)
check "a value of what takes none" grep -q -- '--no-shm=1: takes no value' <("$softhca" --no-shm=1 true 2>&1)
check "an unknown device is refused" status 2 "$softhca" --device=cx9 true
check "it is named" grep -q 'SOFTHCA_DEVICE=cx9: "cx9" is no capability' <("$softhca" --device=cx9 true 2>&1)
check "a capability is refused by what it may be" grep -q 'relaxed-only is one of: no yes' \
	<("$softhca" --device=cx7,relaxed-only=maybe true 2>&1)
check "and by its numbers" grep -q 'ece is no or a number from 0x10000000 to 0xffffffff' \
	<("$softhca" --device=cx7,ece=2 true 2>&1)
for device in cx5:4119:16 cx6dx:4125:22 cx7:4129:28 cx8:4131:40 bf3:41692:32; do
	IFS=: read -r name part firmware <<<"$device"
	"$softhca" --device="$name,relaxed-only" ibv_devinfo >"$dir0" 2>&1
	check "$name: part number" grep -q "vendor_part_id:[[:space:]]*$part$" "$dir0"
	check "$name: firmware" grep -q "fw_ver:[[:space:]]*$firmware\." "$dir0"
done
rm -f "$dir0"
check "a bad schedule is refused" status 2 "$softhca" --faults=drop=2 true
check "once" test "$(SOFTHCA_FAULTS='drop all; mut at 1s' "$softhca" ibv_devinfo 2>&1 | wc -l)" = 1
check "a clause for another process too" status 2 "$softhca" --faults='pe 3: drop' true
check "its place and what it may be are named" grep -q 'at character 14: "tomorrow"' \
	<("$softhca" --faults='link down at tomorrow' true 2>&1)
check "a good schedule is not" status 0 "$softhca" --faults='pe 3: drop all; drop=1e-3' true

# A program linked with a sanitizer: its runtime comes first.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo 'int main(void){return 0;}' >"$dir/a.c"
# (Not with a library that is itself built for another sanitizer.)
if ! ldd "$library" | grep -q libtsan && gcc -fsanitize=address "$dir/a.c" -o "$dir/a" 2>/dev/null; then
	check "libasan first" status 0 "$softhca" "$dir/a"
	check "without the launcher's care it fails" bash -c \
		"! LD_PRELOAD=$library $dir/a >/dev/null 2>&1 || ldd $library | grep -q asan"
fi

# Beside a launcher without the description of the device.
cp "$softhca" "$library" "$dir"
check "no sysfs tree" status 127 "$dir/softhca" true
check "it is named" grep -q '^softhca: sysfs-2: .*not beside libsofthca.so' <("$dir/softhca" --devices=2 true 2>&1)
# In a folder that LD_PRELOAD cannot name.
mkdir "$dir/of two words" && cp -r "$softhca" "$library" "$(dirname "$library")"/sysfs* "$dir/of two words"
check "a space in the path" status 127 "$dir/of two words/softhca" true
check "it is named" grep -q "^softhca: $dir/of two words/.*: LD_PRELOAD cannot hold a space" \
	<("$dir/of two words/softhca" true 2>&1)
# Limits of the process are named with their value.
check "too few descriptors" grep -q '^softhca: .*Too many open files: this process may have 10 (raise it: ulimit -n)' \
	<(ulimit -n 10; "$softhca" ibv_devinfo 2>&1)
check "too small files" grep -q '^softhca: .*this process may make files of 65536 (raise it: ulimit -f)' \
	<(ulimit -f 64; "$softhca" ibv_devinfo 2>&1)

"$softhca" --stats="$dir/stats" ibv_devinfo >/dev/null
check "counters in a file" grep -q '^pid [0-9]* wqes 0 ' "$dir/stats"
check "counters on stderr" grep -q '^softhca: wqes 0$' <("$softhca" --stats ibv_devinfo 2>&1 >/dev/null)
check "counters to no folder" status 2 "$softhca" --stats="$dir/none/stats" true
check "it is named, once" grep -q "^softhca: SOFTHCA_STATS=$dir/none/stats: No such file or directory$" \
	<("$softhca" --stats="$dir/none/stats" true 2>&1)
check "counters to a folder" status 2 "$softhca" --stats="$dir" true
check "a file in this folder" status 0 "$softhca" --stats=softhca.counters true

exit $bad
