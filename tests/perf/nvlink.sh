# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: gdr between two GPUs of this machine, beside NVSHMEM and NCCL where they are
# installed (directories with include/ and lib/ in NVSHMEM_HOME and NCCL_HOME, or Python's wheels).
# NVLink multicast stays off in all of them.

export CUDA_MODULE_LOADING=EAGER NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1 NVSHMEM_BOOTSTRAP=MPI
export GDR_HEAP_SIZE=${GDR_HEAP_SIZE:-2g}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
root=$here/../..

wheel() # name: the directory of NVIDIA's wheel of that name
{
	python3 -c "import nvidia.$1 as m; print(list(m.__path__)[0])" 2>/dev/null
}

nvshmem=${NVSHMEM_HOME:-$(wheel nvshmem)}
nccl=${NCCL_HOME:-$(wheel nccl)}

two()
{
	timeout -k 5 "${LIMIT:-200}" mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$@" </dev/null
}

build_peers()
{
	local libs=()
	if [ -n "$nvshmem" ]; then
		[ -e "$nvshmem/lib/libnvshmem_host.so" ] && libs=(-lnvshmem_host) ||
			libs=(-Xlinker "$nvshmem"/lib/libnvshmem_host.so.*)
		"$nvcc" -std=c++17 -O2 -arch=native -rdc=true -x cu -DAS_NVSHMEM -I"$root" \
			-I"$nvshmem/include" "$here/gdr_perf.c" -o "$out/nvshmem_perf" \
			-L"$nvshmem/lib" "${libs[@]}" -lnvshmem_device -lcuda \
			-Xlinker -rpath,"$nvshmem/lib" >"$out/nvshmem.log" 2>&1 ||
			echo "NVSHMEM's program was not built: $out/nvshmem.log"
	fi
	if [ -n "$nccl" ]; then
		"$nvcc" -O2 -x cu -I"$root" -I"$nccl/include" "$here/nccl_allreduce.c" -o "$out/nccl_allreduce" \
			-Xlinker "$(echo "$nccl"/lib/libnccl.so*)" -Xlinker -rpath,"$nccl/lib" \
			>"$out/nccl.log" 2>&1 || echo "NCCL's program was not built: $out/nccl.log"
	fi
}

build_peers
two "$bin/tests/perf/cuda/gdr_perf" >"$out/nvlink.gdr"
[ -x "$out/nvshmem_perf" ] && two "$out/nvshmem_perf" >"$out/nvlink.nvshmem" 2>"$out/nvshmem.err"
touch "$out/nvlink.nvshmem"
awk 'FNR == NR { if ($1 == "RESULT") peer[$2] = $3 " " $5; next }
     $1 == "RESULT" { print $0, ($2 in peer ? "NVSHMEM " peer[$2] : "") }' \
	"$out/nvlink.nvshmem" "$out/nvlink.gdr" | tee "$out/nvlink.txt"

two "$bin/samples/cuda/allreduce" -m 268435456 -r 200 >"$out/allreduce.gdr"
for kind in "" symmetric; do
	[ -x "$out/nccl_allreduce" ] &&
		timeout -k 5 120 "$out/nccl_allreduce" 2 $kind >"$out/allreduce.nccl$kind"
	touch "$out/allreduce.nccl$kind"
done
awk -v a="$out/allreduce.nccl" -v b="$out/allreduce.ncclsymmetric" '
	BEGIN { while ((getline <a) > 0) n[$1] = $2; while ((getline <b) > 0) s[$1] = $2 }
	$1 + 0 { size = $1 > 16 ? $1 - 4 : $1
		 if (size in n) print "RESULT allreduce_" size, $3, "us [NCCL " n[size] ", symmetric windows " s[size] "]" }' \
	"$out/allreduce.gdr"
