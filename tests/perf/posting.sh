# SPDX-License-Identifier: BSD-3-Clause
# Instructions per post: the count of 12 batches less that of 2, per post, so
# that what happens once does not count.

command -v valgrind >/dev/null || { echo "valgrind is needed: apt-get install valgrind"; exit 1; }

count() # gdr|verbs SIZE BATCHES [WHAT]
{
	# shellcheck disable=SC2086
	GDR_TRANSPORTS=nic timeout -k 5 300 $hca valgrind --tool=callgrind --collect-atstart=no \
		--toggle-collect='count_*' --callgrind-out-file="$out/callgrind.$1.$2" \
		"$bin/tests/perf/posting" "$@" 2>&1 </dev/null |
		awk '/Collected/ { print $4 }'
}

per_post() # gdr|verbs SIZE [WHAT]
{
	local many few
	# shellcheck disable=SC2086
	many=$(count "$1" "$2" 12 ${3:-}) few=$(count "$1" "$2" 2 ${3:-})
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

# What order costs: posted for a network that keeps it, and for one that does not.
echo "what,size,strict_insn,relaxed_insn" >"$out/order.csv"
for what in put:8 put:64 p:8 p:4 p:2 signal:8 put_signal:64 fenced:64; do
	size=${what#*:} what=${what%:*}
	strict=$(GDR_ORDER=assumed per_post gdr "$size" "$what")
	relaxed=$(GDR_ORDER=relaxed per_post gdr "$size" "$what")
	printf '%10s of %2d B: strict %s, relaxed %s instructions\n' "$what" "$size" "$strict" "$relaxed"
	echo "$what,$size,$strict,$relaxed" >>"$out/order.csv"
	result "order_$what$size $strict insn relaxed $relaxed"
done
