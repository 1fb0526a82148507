# SPDX-License-Identifier: BSD-3-Clause
# Instructions per post: the count of 12 batches less that of 2, per post, so
# that what happens once does not count.

command -v valgrind >/dev/null || { echo "valgrind is needed: apt-get install valgrind"; exit 1; }

count() # gdr|verbs SIZE BATCHES
{
	# shellcheck disable=SC2086
	GDR_TRANSPORTS=nic timeout -k 5 300 $hca valgrind --tool=callgrind --collect-atstart=no \
		--toggle-collect='count_*' --callgrind-out-file="$out/callgrind.$1.$2" \
		"$bin/tests/perf/posting" "$1" "$2" "$3" 2>&1 </dev/null |
		awk '/Collected/ { print $4 }'
}

per_post()
{
	local many few
	many=$(count "$1" "$2" 12)
	few=$(count "$1" "$2" 2)
	awk -v a="${many:-0}" -v b="${few:-0}" 'BEGIN { printf "%.1f", (a - b) / (10 * 64) }'
}

echo "size,gdr_insn,libmlx5_insn" >"$out/posting.csv"
for size in 8 64; do
	ours=$(per_post gdr $size)
	theirs=$(per_post verbs $size)
	printf '%5d B put: gdr %s, libmlx5 %s instructions\n' $size "$ours" "$theirs"
	echo "$size,$ours,$theirs" >>"$out/posting.csv"
	result "post_put${size}_instructions $ours insn libmlx5 $theirs"
done
