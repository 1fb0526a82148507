# SPDX-License-Identifier: BSD-3-Clause
# Collectives over two nodes (softhca makes them of this one) of LEVELS_PES (4) PEs together: flat, as a team whose
# members do not share memory would have it chosen, against both levels. Of each: work queue entries that a
# call posts, all PEs together, which is what goes between the nodes, and the median time of one.

levels_flat="sync:tree,broadcast:flat:4k,broadcast:tree:16k,broadcast:direct:64k,broadcast:two"
levels_flat+=",collect:flat:16k,collect:direct,reduce:flat:4k,reduce:two"
levels_flat+=",alltoall:flat:16k,alltoall:direct,scan:flat:4k,scan:ring"
levels_pes=${LEVELS_PES:-4}

levels_run() # RULES KIND BYTES CALLS ROUNDS; time and entries of all rounds
{
	rm -f "$out/levels.stats"
	t=$(SOFTHCA_NODES=2 SOFTHCA_STATS=$out/levels.stats GDR_TRANSPORTS=p2p,nic GDR_COLL=$1 \
		pes "$levels_pes" "$bin/tests/perf/coll_one" "$2" "$3" "$4" "$5" 2>"$out/levels.log")
	w=$(awk '{ for (i = 1; i < NF; i++) if ($i == "wqes") n += $(i + 1) } END { print n + 0 }' "$out/levels.stats")
}

levels_case() # KIND BYTES CALLS RULES-OF-BOTH-LEVELS
{
	local calls=$3 how rules none
	for how in flat levels; do
		rules=$levels_flat
		[ $how = flat ] || rules=$4
		: >"$out/levels.$how"
		levels_run "$rules" "$1" "$2" 0 "$rounds"
		none=$w
		levels_run "$rules" "$1" "$2" "$calls" "$rounds"
		echo "$t" >>"$out/levels.$how"
		eval "${how}_w=$(awk "BEGIN { printf \"%.1f\", ($w - $none) / $calls / $rounds }")"
	done
	for ((round = 1; round < rounds; round++)); do
		levels_run "$levels_flat" "$1" "$2" "$calls" 3
		echo "$t" >>"$out/levels.flat"
		levels_run "$4" "$1" "$2" "$calls" 3
		echo "$t" >>"$out/levels.levels"
	done
	f=$(median <"$out/levels.flat") l=$(median <"$out/levels.levels")
	# shellcheck disable=SC2154 # set by eval
	{
		result "levels_$1_$2_us" "${l%% *}" us "${f%% *}"
		result "levels_$1_$2_wqes" "$levels_w" entries "$flat_w"
		echo "$1,$2,$levels_pes,$levels_w,$flat_w,$l,$f" >>"$out/levels.csv"
	}
}

echo "kind,bytes,pes,levels_wqes,flat_wqes,levels_us min max,flat_us min max" >"$out/levels.csv"
for kind in ${LEVELS_KINDS:-barrier_all sync broadcast fcollect alltoall reduce reducescatter scan}; do
	for size in ${LEVELS_SIZES:-64 4096 65536 1048576}; do
		case $kind in
		barrier_all | sync) [ "$size" = 64 ] || continue ;;
		esac
		n=$((size <= 4096 ? 400 : size <= 65536 ? 100 : 20))
		levels_case "$kind" "$size" "${ITERATIONS:-$n}" ""
	done
done
