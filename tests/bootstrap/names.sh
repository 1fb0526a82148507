#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# names.sh ROOT: the lists of bootstraps that people read have each row of bootstrap/boot.h, and no other.
set -u
cd "$1" || exit 1
bad=0
differs() {
	echo "names.sh: $1"
	bad=1
}

rows() { # PASSED or NAMED
	sed -n "s/^#define GDRI_BOOT_$1(row)//p" bootstrap/boot.h | grep -o '([a-z0-9_]*)' | tr -d '()'
}

# PATTERN: the words of standard input that it finds, without what quotes them
words() {
	grep -o "$1" | tr -d '`"( ' | sort
}

passed=$(rows PASSED)
named=$(rows NAMED)
all=$(printf '%s\n' $passed $named | sort)
[ "$(echo "$all" | wc -l)" -ge 5 ] || differs "the rows of bootstrap/boot.h were not found"
[ "$(grep 'const char \*bootstrap;' include/gdr/host.h | words '"[a-z0-9_]*"')" = "$all" ] ||
	differs "include/gdr/host.h, gdr_job_info.bootstrap, is not: $(echo $all)"
[ "$(grep '^|.*| `' docs/bootstrap.md | sed 's/.*| `/`/' | words '^`[a-z0-9_]*`')" = "$all" ] ||
	differs "the first table of docs/bootstrap.md is not: $(echo $all)"
[ "$(grep '^| `GDR_BOOTSTRAP`' docs/options.md | words ' [a-z0-9_]* (' | grep -vx auto)" = "$(echo "$named" | sort)" ] ||
	differs "the text of GDR_BOOTSTRAP in runtime/core/options.def explains others than: $(echo $named)"
exit $bad
