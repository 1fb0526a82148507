# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: whole programs in NVSHMEM's API (apps/*.cu), each compiled three ways and run in turn by PES (2)
# PEs on GPUs of this machine, ROUNDS times: against gdr by its headers, against gdr with -rdc=true and
# libnvshmem_device.a, and against NVSHMEM where it is installed (NVSHMEM_HOME or Python's wheel), which knows
# -rdc=true alone. A program compares its results with what is right, and its figures count only then. gdr's files by
# NVSHMEM's names are those of GDR_NVSHMEM, else of BUILD_DIR/nvshmem, and are installed there where they are not.
# APPS: which programs. ARCH: native. NVLink multicast stays off. OUT_DIR/apps.registers has what ptxas and nvlink
# say of each kernel.

export CUDA_MODULE_LOADING=EAGER NVSHMEM_DISABLE_NVLS=1 NVSHMEM_DISABLE_NCCL=1 NVSHMEM_BOOTSTRAP=MPI
export GDR_HEAP_SIZE=${GDR_HEAP_SIZE:-2g}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
nvshmem=${NVSHMEM_HOME:-$(python3 -c "import nvidia.nvshmem as m; print(list(m.__path__)[0])" 2>/dev/null)}
prefix=${GDR_NVSHMEM:-$bin/nvshmem}
[ -e "$prefix/include/nvshmem.h" ] ||
	cmake --install "$bin" --component nvshmem --prefix "$prefix" >"$out/apps.install" 2>&1 ||
	{ echo "gdr by NVSHMEM's names is not there: $out/apps.install"; exit 1; }

# OUT_DIR/NAME.WAY; what the compiler says in its .log
apps_build() # name way directory-of-the-library flags...
{
	local name=$1 way=$2 dir=$3 program=$out/$1.$2 libs=(-lnvshmem_host)
	shift 3
	[ -e "$dir/lib/libnvshmem_host.so" ] || libs=(-Xlinker "$(echo "$dir"/lib/libnvshmem_host.so.*)")
	[[ " $* " != *" -rdc=true "* ]] || libs+=(-lnvshmem_device)
	"$nvcc" -std=c++17 -O2 "-arch=${ARCH:-native}" -Xptxas -v -Xnvlink -v "$@" -I"$dir/include" \
		"$here/apps/$name.cu" -o "$program" -L"$dir/lib" "${libs[@]}" -lcuda -L"${nvcc%/bin/*}/lib64/stubs" \
		-Xlinker -rpath,"$dir/lib" >"$program.log" 2>&1 ||
		echo "not built: $program.log"
}

# "WAY KERNEL REGISTERS STACK" of all programs: ptxas' words, or those of nvlink, which has what is called by then
apps_registers()
{
	local log way
	for log in "$out"/*.plain.log "$out"/*.linked.log "$out"/*.nvshmem.log; do
		way=${log%.log}
		awk -v way="${way##*/}" '
			/^nvlink.*Function properties for|^ptxas.*Compiling entry function/ {
				match($0, /_ZL?[0-9]+/) # _Z4name..., the length before the name
				length_of = substr($0, RSTART, RLENGTH); gsub(/[^0-9]/, "", length_of)
				kernel = substr($0, RSTART + RLENGTH, length_of)
			}
			/^(ptxas|nvlink).*[Uu]sed [0-9]+ registers/ {
				if (!/^nvlink/ && way !~ /plain/)
					next
				match($0, /[0-9]+ registers/); registers = substr($0, RSTART) + 0
				stack = match($0, /[0-9]+ (bytes cumulative )?stack/) ? substr($0, RSTART) + 0 : 0
				print way, kernel, registers, stack
			}' "$log"
	done
}

apps_ways=(plain linked)
[ -z "$nvshmem" ] || apps_ways+=(nvshmem)
apps_names=${APPS:-halo3d lbm cg moe}
for name in $apps_names; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	apps_build "$name" plain "$prefix" &
	apps_build "$name" linked "$prefix" -rdc=true &
	[ -z "$nvshmem" ] || apps_build "$name" nvshmem "$nvshmem" -rdc=true &
done
wait
apps_registers >"$out/apps.registers"
for ((round = 0; round < rounds; round++)); do
	for name in $apps_names; do
		for way in "${apps_ways[@]}"; do
			[ -x "$out/$name.$way" ] || continue
			timeout -k 5 "${LIMIT:-60}" mpirun --allow-run-as-root --oversubscribe --bind-to none \
				-n "${PES:-2}" "$out/$name.$way" </dev/null >"$out/apps.said" 2>"$out/$name.$way.err" ||
				{ echo "failed, or wrong: $name.$way, $out/$name.$way.err"; continue; }
			awk -v way="$way" '$1 == "time_us" { print $2, way, $3 }' "$out/apps.said"
		done
	done
done >"$out/apps.all"
grep '^failed' "$out/apps.all"
for name in $(awk '$1 !~ /^failed/ && !($1 in seen) { seen[$1]; print $1 }' "$out/apps.all"); do
	for way in "${apps_ways[@]}"; do
		awk -v n="$name" -v w="$way" '$1 == n && $2 == w { print $3 }' "$out/apps.all" |
			median >"$out/apps.$way"
	done
	result "app_$name $(awk '{ print $1 " us [" $2 ".." $3 "]" }' "$out/apps.plain")" \
		"$(awk 'NF { print "-rdc=true " $1 " [" $2 ".." $3 "]" }' "$out/apps.linked")" \
		"$([ -z "$nvshmem" ] || awk 'NF { print "NVSHMEM " $1 " [" $2 ".." $3 "]" }' "$out/apps.nvshmem")"
done | tee "$out/apps.txt"
