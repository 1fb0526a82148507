# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: what host threads pay on GPUs: bring-up behind an existing CUDA context, gdr_malloc and gdr_free, the
# barrier; beside NVSHMEM where it is installed (as nvlink.sh finds it). PES: "2 4" by default.

export CUDA_MODULE_LOADING=EAGER NVSHMEM_DISABLE_NVLS=1 NVSHMEM_BOOTSTRAP=MPI
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
nvshmem=${NVSHMEM_HOME:-$(python3 -c "import nvidia.nvshmem as m; print(list(m.__path__)[0])" 2>/dev/null)}

on_gpus() # n program...
{
	local n=$1
	shift
	timeout -k 5 "${LIMIT:-60}" mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$n" "$@" </dev/null
}

# Worst PE of each job, then the median over the rounds.
init_of() # n program
{
	local round
	for ((round = 0; round < rounds; round++)); do
		: >"$out/together"
		INIT_GPU_FILE=$out/together INIT_GPU_N=$1 on_gpus "$1" "$2" 2>>"$out/init.err" |
			awk '{ for (i = 1; i <= 3; i++) if ($i > m[i]) m[i] = $i } END { if (NR) print m[1], m[2], m[3] }'
	done >"$out/init.rows"
	for column in 1 2 3; do awk -v c=$column '{ print $c }' "$out/init.rows" | median; done |
		awk '{ printf "%s [%s..%s] ", $1, $2, $3 }'
}

if [ -n "$nvshmem" ]; then
	as_nvshmem "$here/init_gpu.c" "$out/nvshmem_init" &
	as_nvshmem "$here/stream_times.c" "$out/nvshmem_times" &
	wait
fi
for n in ${PES:-2 4}; do
	result "init_gpu_$n init, to first kernel, finalize in ms: $(init_of "$n" "$bin/tests/perf/cuda/init_gpu")"
	[ -x "$out/nvshmem_init" ] &&
		result "init_gpu_$n NVSHMEM: $(init_of "$n" "$out/nvshmem_init")"
	on_gpus "$n" "$bin/tests/perf/cuda/stream_times" heap | sed "s/^RESULT /&hosts_${n}_/"
	[ -x "$out/nvshmem_times" ] &&
		on_gpus "$n" "$out/nvshmem_times" heap 2>"$out/nvshmem.err" | sed "s/^RESULT /&hosts_${n}_NVSHMEM_/"
done
