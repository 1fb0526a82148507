# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: softhca with memory of two GPUs of this machine. gdr's kernels put over queues,
# none by NVLink of their own; queues in memory of the host and of the GPU. Each figure has the
# mode in its name. Beside them, where NVSHMEM is installed (NVSHMEM_HOME or Python's wheel), its
# IBGDA transport on the same device.

# An adapter's MTU: this machine's interface may carry less, and nothing here goes there.
export CUDA_MODULE_LOADING=EAGER NVSHMEM_DISABLE_NVLS=1 SOFTHCA_MTU=${SOFTHCA_MTU:-4096}
nvshmem=${NVSHMEM_HOME:-$(python3 -c "import nvidia.nvshmem as m; print(list(m.__path__)[0])" 2>/dev/null)}

gpu_pes() # MODE NAME...
{
	local mode=$1
	shift
	GDR_TRANSPORTS=nic GDR_HEAP_KIND=gpu GDR_QUEUE_MEM=$mode timeout -k 5 "${LIMIT:-120}" \
		mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$softhca" \
		"$bin/tests/perf/cuda/gdr_perf" "$@" </dev/null 2>>"$out/gpu.err" |
		sed -n "s/^RESULT /RESULT rings_${mode}_/p" | tee -a "$out/gpu.txt"
}

: >"$out/gpu.txt"
for mode in host gpu; do
	gpu_pes $mode latency
	gpu_pes $mode many
	gpu_pes $mode one_mib
	gpu_pes $mode mib_each
done
if [ -n "$nvshmem" ]; then
	"$here/../../softhca/tests/nvshmem" "$nvshmem" "$softhca" defaults host_rings >"$out/gpu.nvshmem"
	awk '/^(defaults|host_rings):/ { mode = $1 }
	     /\[0\] time/ { sub(/.*time /, ""); print "nvshmem", mode, $0 }' "$out/gpu.nvshmem"
fi
