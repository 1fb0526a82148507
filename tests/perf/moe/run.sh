# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: samples/moe on PES (2) GPUs of this machine, by blocks (BLOCKS), beside NCCL's all-to-all of the bytes
# that go to other PEs, by as many blocks and by as many as it chooses itself. NCCL is a directory with include/ and lib/
# in NCCL_HOME, or Python's wheel. NVLink multicast stays off. SHARED: KiB of shared memory of a block. TIMED: rounds.
# added: the throughput form with a kernel of ADDERS (132) blocks behind combine's.

export CUDA_MODULE_LOADING=EAGER NCCL_NVLS_ENABLE=0 GDR_HEAP_SIZE=${GDR_HEAP_SIZE:-2g}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
nccl=${NCCL_HOME:-$(python3 -c "import nvidia.nccl as m; print(list(m.__path__)[0])" 2>/dev/null)}
gpus=${PES:-2}

moe() # tokens, blocks, options: "dispatch us min max bytes" and the same of combine
{
	local tokens=$1 blocks=$2
	shift 2
	timeout -k 5 "${LIMIT:-120}" mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$gpus" \
		"$bin/samples/cuda/moe" -t "$tokens" -b "$blocks" -s "${SHARED:-192}" -r 0 -n "${TIMED:-50}" --align "$@" \
		</dev/null 2>>"$out/moe.err" |
		awk '$1 == "timed" { sub(":", "", $2); sub(",", "", $10); print $2, $6, $8, $10, $14 }'
}

# "blocks form tokens kind kernel us min max bytes"
all_of_gdr()
{
	local blocks tokens kind form
	for blocks in ${BLOCKS:-8 16 32 64 128}; do
		for tokens in ${TOKENS:-128 4096}; do
			for kind in bf16 fp8; do
				for form in low_latency throughput added; do
					[ "$form" = low_latency ] && [ "$tokens" -gt 512 ] && continue # the slots of its experts
					moe "$tokens" "$blocks" $([ $kind = fp8 ] && echo --fp8) \
						$([ $form = low_latency ] || echo --throughput) $([ $form = added ] && echo -a "${ADDERS:-132}") |
						sed "s/^/$blocks $form $tokens $kind /"
				done
			done
		done
	done
}

# "blocks bytes us"
all_of_nccl() # bytes...
{
	local blocks
	for blocks in ${BLOCKS:-8 16 32 64 128}; do
		NCCL_MIN_CTAS=$blocks NCCL_MAX_CTAS=$blocks NCCL_MIN_P2P_NCHANNELS=$blocks NCCL_MAX_P2P_NCHANNELS=$blocks \
			NCCL_NCHANNELS_PER_PEER=$blocks timeout -k 5 "${LIMIT:-120}" "$out/nccl_alltoall" "$gpus" "$@" \
			2>>"$out/moe.err" | sed "s/^/$blocks /"
	done
	timeout -k 5 "${LIMIT:-120}" "$out/nccl_alltoall" "$gpus" "$@" 2>>"$out/moe.err" | sed "s/^/own /"
}

if [ -n "$nccl" ]; then
	libnccl=$(ls "$nccl"/lib/libnccl.so* | head -1)
	"$nvcc" -O2 -x cu -I"$here/../.." -I"$nccl/include" "$here/moe/nccl_alltoall.c" -o "$out/nccl_alltoall" \
		-Xlinker "$libnccl" -Xlinker -rpath,"$nccl/lib" >"$out/nccl.log" 2>&1 ||
		echo "NCCL's program was not built: $out/nccl.log"
fi
all_of_gdr >"$out/moe.gdr"
: >"$out/moe.nccl"
# shellcheck disable=SC2046 # numbers
[ -x "$out/nccl_alltoall" ] && all_of_nccl $(awk '{ print $9 }' "$out/moe.gdr" | sort -nu) >"$out/moe.nccl"
awk 'FNR == NR { nccl[$1 " " $2] = $3; next }
     { bytes = $9; us = $6; name = "moe_" $2 "_" $5 "_" $3 "_" $4 "_" $1
       peer = bandwidth = ""
       if (($1 " " bytes) in nccl) {
	       by = nccl[$1 " " bytes]; own = nccl["own " bytes]
	       peer = " [NCCL " by ", by blocks of its choice " own "]"
	       bandwidth = sprintf(" [NCCL %.1f, by blocks of its choice %.1f]", bytes / by / 1e3, bytes / own / 1e3)
       }
       print "RESULT " name " " us " us" peer
       print "RESULT " name "_bandwidth " sprintf("%.1f", bytes / us / 1e3) " GB/s" bandwidth }' \
	"$out/moe.nccl" "$out/moe.gdr" | tee "$out/moe.txt"
