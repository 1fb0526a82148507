# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: what posting costs a GPU's threads, by queues to a PE (QUEUES, 1 2 8) and blocks, into rings that
# softhca empties, moving inline data alone (host threads meet by such words); beside NVSHMEM's IBGDA transport on the same device where NVSHMEM is
# installed (NVSHMEM_HOME, or Python's wheel). Then collectives of one block, over mapped memory.

export CUDA_MODULE_LOADING=EAGER NVSHMEM_DISABLE_NVLS=1 NVSHMEM_BOOTSTRAP=MPI
root=$here/../..
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
nvshmem=${NVSHMEM_HOME:-$(python3 -c "import nvidia.nvshmem as m; print(list(m.__path__)[0])" 2>/dev/null)}
depth=8192

two()
{
	timeout -k 5 "${LIMIT:-100}" mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$@" </dev/null
}

beside() # name, prefix: RESULT lines of $out/$1.gdr, with NVSHMEM's value of the same name
{
	awk -v tag="$2" 'FNR == NR { if ($1 == "RESULT") peer[$2] = "NVSHMEM " $3 " " $5; next }
	     $1 == "RESULT" { name = $2; $2 = tag name; print $0, peer[name] }' \
		"$out/$1.nvshmem" "$out/$1.gdr" | tee "$out/$1.txt"
}

peer() # program: built as NVSHMEM's
{
	"$nvcc" -std=c++17 -O2 -arch=native -rdc=true -x cu -DAS_NVSHMEM -I"$root" -I"$nvshmem/include" \
		"$here/$1.c" -o "$out/nvshmem_$1" -L"$nvshmem/lib" \
		-Xlinker "$(echo "$nvshmem"/lib/libnvshmem_host.so* | cut -d' ' -f1)" -lnvshmem_device -lcuda \
		-Xlinker -rpath,"$nvshmem/lib" >"$out/nvshmem_$1.log" 2>&1 ||
		echo "NVSHMEM's program was not built: $out/nvshmem_$1.log"
}

if [ -n "$nvshmem" ]; then
	peer gdr_perf
	peer coll_device
fi
for queues in ${QUEUES:-1 2 8}; do
	name=post$queues
	export PERF_ROOM=$((queues * (depth - 192))) PERF_RING=$((depth - 192))
	GDR_TRANSPORTS=nic SOFTHCA_NULL=1 GDR_QPS_PER_PE=$queues GDR_QP_DEPTH=$depth \
		two "$bin/softhca/softhca" "$bin/tests/perf/cuda/gdr_perf" post >"$out/$name.gdr"
	: >"$out/$name.nvshmem"
	[ -x "$out/nvshmem_gdr_perf" ] && NVSHMEM_IB_ENABLE_IBGDA=1 NVSHMEM_REMOTE_TRANSPORT=none \
		NVSHMEM_DISABLE_P2P=1 NVSHMEM_DISABLE_NCCL=1 SOFTHCA_LINK=ib SOFTHCA_NULL=1 \
		NVSHMEM_QP_DEPTH=$depth NVSHMEM_IBGDA_NUM_RC_PER_PE=$queues NVSHMEM_SYMMETRIC_SIZE=1G \
		two "$bin/softhca/softhca" "$out/nvshmem_gdr_perf" post >"$out/$name.nvshmem" 2>"$out/$name.err"
	beside "$name" "queues${queues}_"
done
GDR_HEAP_SIZE=2g two "$bin/tests/perf/cuda/coll_device" >"$out/coll.gdr"
: >"$out/coll.nvshmem"
[ -x "$out/nvshmem_coll_device" ] && NVSHMEM_SYMMETRIC_SIZE=2G two "$out/nvshmem_coll_device" >"$out/coll.nvshmem" 2>"$out/coll.err"
beside coll ""
