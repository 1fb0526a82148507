# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: instructions that one call of put_nbi by queue takes, 8 and 64 bytes, by a thread and by a whole warp,
# as ncu counts them: those of a kernel of 200 calls less those of the same kernel of none, divided by 200. Rings that
# softhca empties, moving inline data alone (host threads meet by such words); beside NVSHMEM's IBGDA transport where NVSHMEM is installed (NVSHMEM_HOME, or
# Python's wheel). One warp runs: the instructions that it executed, whatever number of its lanes took part.

export CUDA_MODULE_LOADING=LAZY GDR_TIMEOUT=60s NVSHMEM_DISABLE_NVLS=1 NVSHMEM_BOOTSTRAP=MPI
root=$here/../..
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
ncu=${NCU:-$(command -v ncu || echo /usr/local/cuda/bin/ncu)}
nvshmem=${NVSHMEM_HOME:-$(python3 -c "import nvidia.nvshmem as m; print(list(m.__path__)[0])" 2>/dev/null)}

counted() # name, program: PE 0 under ncu; "name kernel instructions" in the order of the launches
{
	timeout -k 5 "${LIMIT:-100}" mpirun --allow-run-as-root --oversubscribe --bind-to none \
		-n 1 "$ncu" --csv --log-file "$out/$1.csv" --target-processes all \
		--metrics smsp__inst_executed.sum --clock-control none --cache-control none \
		--kernel-name regex:post_ "$bin/softhca/softhca" "$2" count : \
		-n 1 "$bin/softhca/softhca" "$2" count </dev/null >"$out/$1.log" 2>&1 ||
		echo "$1 did not end well: $out/$1.log"
	awk -F'","' '$0 ~ /smsp__inst_executed/ { v = $NF; gsub(/[",]/, "", v); print v + 0 }' "$out/$1.csv" >"$out/$1.n"
}

of() # line pair: a call's
{
	awk -v a="$2" 'NR == a { none = $1 } NR == a + 1 { printf "%.1f", ($1 - none) / 200 }' "$out/$1.n" 2>/dev/null
}

GDR_TRANSPORTS=nic SOFTHCA_NULL=1 GDR_QP_DEPTH=8192 counted count_gdr "$bin/tests/perf/cuda/gdr_perf"
if [ -n "$nvshmem" ]; then
	[ -x "$out/nvshmem_gdr_perf" ] ||
		"$nvcc" -std=c++17 -O2 -arch=native -rdc=true -x cu -DAS_NVSHMEM -I"$root" -I"$nvshmem/include" \
			"$here/gdr_perf.c" -o "$out/nvshmem_gdr_perf" -L"$nvshmem/lib" \
			-Xlinker "$(echo "$nvshmem"/lib/libnvshmem_host.so* | cut -d' ' -f1)" -lnvshmem_device -lcuda \
			-Xlinker -rpath,"$nvshmem/lib" >"$out/nvshmem_gdr_perf.log" 2>&1 ||
		echo "NVSHMEM's program was not built: $out/nvshmem_gdr_perf.log"
	NVSHMEM_IB_ENABLE_IBGDA=1 NVSHMEM_REMOTE_TRANSPORT=none NVSHMEM_DISABLE_P2P=1 NVSHMEM_DISABLE_NCCL=1 \
		SOFTHCA_LINK=ib SOFTHCA_NULL=1 NVSHMEM_QP_DEPTH=8192 NVSHMEM_SYMMETRIC_SIZE=1G \
		counted count_nvshmem "$out/nvshmem_gdr_perf"
fi
i=1
for name in 8B_thread 64B_thread 8B_warp 64B_warp; do
	p=$(of count_nvshmem "$i")
	result "post_${name}_instructions $(of count_gdr "$i") of_a_warp ${p:+[NVSHMEM $p]}"
	i=$((i + 2))
done
