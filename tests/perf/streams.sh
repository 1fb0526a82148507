# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: what a host thread pays for calls on streams, beside NVSHMEM where it is installed (as nvlink.sh finds
# it), ROUNDS times in turn: the median of the rounds and the least and most of them. "bare" are copies of the runtime
# in the same process, which say how fast the host was. PES: 2 by default. OUT_DIR/nvshmem_streams, NVSHMEM's program, is
# built unless it is there.

export CUDA_MODULE_LOADING=EAGER NVSHMEM_DISABLE_NVLS=1 NVSHMEM_DISABLE_NCCL=1 NVSHMEM_BOOTSTRAP=MPI
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
nvshmem=${NVSHMEM_HOME:-$(python3 -c "import nvidia.nvshmem as m; print(list(m.__path__)[0])" 2>/dev/null)}

streams_run() # library program
{
	timeout -k 5 "${LIMIT:-60}" mpirun --allow-run-as-root --oversubscribe --bind-to none -n "${PES:-2}" "$2" puts \
		</dev/null 2>"$out/streams.$1.err" | sed -n 's/^RESULT //p' >>"$out/streams.$1"
}

[ -z "$nvshmem" ] || [ -x "$out/nvshmem_streams" ] || as_nvshmem "$here/stream_times.c" "$out/nvshmem_streams"
: >"$out/streams.gdr"
: >"$out/streams.nvshmem"
for ((round = 0; round < rounds; round++)); do
	streams_run gdr "$bin/tests/perf/cuda/stream_times"
	[ ! -x "$out/nvshmem_streams" ] || streams_run nvshmem "$out/nvshmem_streams"
done
for name in $(awk '!($1 in seen) { seen[$1]; print $1 }' "$out/streams.gdr"); do
	g=$(awk -v n="$name" '$1 == n { print $2 }' "$out/streams.gdr" | median)
	n=$(awk -v n="$name" '$1 == n { print $2 }' "$out/streams.nvshmem" | median)
	result "streams_$name $(awk '{ print $1 " us [" $2 ".." $3 "]" }' <<<"$g")" \
		"$(awk 'NF { print "NVSHMEM " $1 " [" $2 ".." $3 "]" }' <<<"$n")"
done
