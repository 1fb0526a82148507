# SPDX-License-Identifier: BSD-3-Clause
# Shared by the benchmarks of tests/perf/run. Sourced; expects $bin (build
# directory) and $out (directory for CSV and logs).

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
softhca=$bin/softhca/softhca
rounds=${ROUNDS:-5}

# On a machine with an mlx5 device everything runs on it, else on softhca.
if ibv_devices 2>/dev/null | grep -q mlx5; then
	hca=""
	hca_text="mlx5 device of this machine"
else
	hca=$softhca
	hca_text="softhca"
fi

# median, min, max of the numbers on stdin: one line
median()
{
	sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)], v[1], v[NR] }'
}

# RESULT name value unit [peer value]
result()
{
	echo "RESULT $*"
}

# Two processes on two cores: each program's processes are bound to one each, as
# mpirun does by itself, or the scheduler's choices are all that is measured.
first="" second=""
if [ "$(nproc)" = 2 ]; then
	first="taskset -c 0" second="taskset -c 1"
fi

pes()
{
	local n=$1
	shift
	# shellcheck disable=SC2086
	timeout -k 5 "${LIMIT:-120}" mpirun --oversubscribe --bind-to none -n "$n" $hca "$@" </dev/null
}

two_pes()
{
	# shellcheck disable=SC2086
	timeout -k 5 "${LIMIT:-120}" mpirun --oversubscribe --bind-to none \
		-n 1 $first $hca "$@" : -n 1 $second $hca "$@" </dev/null
}

# Starts "$1" as server in the background, then "$2" as client; prints the
# client's output.
server_client()
{
	local server
	# shellcheck disable=SC2086
	timeout -k 5 "${LIMIT:-120}" $first $hca $1 >"$out/server.log" 2>&1 </dev/null &
	server=$!
	sleep 0.7
	# shellcheck disable=SC2086
	timeout -k 5 "${LIMIT:-120}" $second $hca $2 2>"$out/client.log" </dev/null
	wait "$server"
}

# Runs FUNCTION_gdr, FUNCTION_perftest and FUNCTION_ucx in turn, ROUNDS times, and
# leaves the median of each in g, p, u (empty: the peer gave no figure).
interleaved() # FUNCTION SIZE ITERATIONS
{
	local peer round
	for peer in gdr perftest ucx; do : >"$out/$1.$peer"; done
	for ((round = 0; round < rounds; round++)); do
		for peer in gdr perftest ucx; do
			"$1_$peer" "$2" "$3" >>"$out/$1.$peer"
		done
	done
	g=$(median <"$out/$1.gdr") p=$(median <"$out/$1.perftest") u=$(median <"$out/$1.ucx")
	spread=${g#* } g=${g%% *} p=${p%% *} u=${u%% *}
}

# Builds a source that is for NVSHMEM, too; expects $nvcc and $nvshmem (its directory).
as_nvshmem() # source program
{
	local libs=(-lnvshmem_host)
	[ -e "$nvshmem/lib/libnvshmem_host.so" ] || libs=(-Xlinker "$nvshmem"/lib/libnvshmem_host.so.*)
	"$nvcc" -std=c++17 -O2 -arch=native -rdc=true -D_GNU_SOURCE -x cu -DAS_NVSHMEM -I"$here/../.." -I"$nvshmem/include" \
		"$1" -o "$2" -L"$nvshmem/lib" "${libs[@]}" -lnvshmem_device -lcuda \
		-Xlinker -rpath,"$nvshmem/lib" >"$2.log" 2>&1 || echo "NVSHMEM's program was not built: $2.log"
}
