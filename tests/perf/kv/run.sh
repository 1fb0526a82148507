# SPDX-License-Identifier: BSD-3-Clause
# Sourced by run: pages of a KV cache from prefill to decode, as samples/kv_transfer moves them, but straight into decode's
# cache: time to the first page and bandwidth of all, by SIZES of a page (MIB of one size), two processes of this machine.
# gdr has a signal for each page (each), or one for the first and one for all (one), as its peers have notifications.
# Beside it by each transport the same pages by NIXL (the first of NIXL_PYTHON, python3 that has the wheel; its backend UCX)
# and by UCX itself (its headers and cc), in turn, ROUNDS times, medians. A peer that is not there is "absent" in its rows.
# GPUS=1: memory of two GPUs, by mapped memory alone, beside NIXL, without mpirun; BLOCKS of a kernel. WAYS: which of the ways below.

nixl_python=${NIXL_PYTHON:-python3}
on=${GPUS:+cuda}
mib=${MIB:-$([ -n "$on" ] && echo 64 || echo 8)} timed=${TIMED:-15}
export NIXL_LOG_LEVEL=WARN UCX_WARN_UNUSED_ENV_VARS=n CUDA_MODULE_LOADING=EAGER

# Each prints "BYTES us GB/s pages", or nothing. UCX logs on stdout, too.
kv_each() # way size
{
	kv_gdr each "$@"
}

kv_one()
{
	kv_gdr one "$@"
}

kv_gdr() # signals way size
{
	local signals=$1
	shift
	local transport=$1 pre="" program=$bin/tests/perf/pages
	case $1 in tcp | shm) transport=ofi ;; softhca) transport=nic pre=$hca ;; mapped) transport=p2p ;; esac
	[ -z "$on" ] || {
		# shellcheck disable=SC2086
		GDR_HEAP_SIZE=256m GDR_BOOTSTRAP=env MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000)) \
			GDR_TRANSPORTS=p2p LIMIT=${LIMIT:-60} "$here/../launch/plain" 2 \
			"$bin/tests/perf/cuda/pages" $signals "$2" "$mib" "$timed" ${BLOCKS:-} </dev/null 2>>"$out/kv.err"
		return
	}
	# shellcheck disable=SC2086
	GDR_TRANSPORTS=$transport GDR_OFI_PROVIDER=$1 timeout -k 5 "${LIMIT:-60}" mpirun --allow-run-as-root --oversubscribe \
		--bind-to none -n 1 $first $pre "$program" $signals "$2" "$mib" "$timed" ${BLOCKS:-} : \
		-n 1 $second $pre "$program" $signals "$2" "$mib" "$timed" ${BLOCKS:-} </dev/null 2>>"$out/kv.err"
}

kv_nixl() # without tcp NIXL has no active messages; what tcp and shared memory are for is UCX's choice
{
	local tls=tcp,self
	case $1 in mapped | shm) tls=shm,tcp,self ;; softhca) return ;; esac
	[ -z "$on" ] || tls=cuda_copy,cuda_ipc,tcp,self
	UCX_TLS=$tls timeout -k 5 "${LIMIT:-60}" "$nixl_python" "$here/kv/nixl_pages.py" "$2" "$mib" "$timed" $on \
		</dev/null 2>>"$out/kv.err" | grep "^$2 "
}

kv_ucx()
{
	local tls=tcp,self
	case $1 in mapped | shm) tls=posix,self ;; softhca) return ;; esac # its rc_verbs finds no second transport to connect by
	UCX_TLS=$tls timeout -k 5 "${LIMIT:-60}" "$out/ucx_pages" "$2" "$mib" "$timed" </dev/null 2>>"$out/kv.err" | grep "^$2 "
}

kv_peers=""
if "$nixl_python" "$here/kv/nixl_pages.py" there 2>>"$out/kv.err"; then
	kv_peers=nixl
else
	echo "NIXL is absent: $nixl_python imports none of nixl_cu13, nixl_cu12, nixl ($out/kv.err)"
fi
if [ -n "$on" ]; then
	echo "UCX by itself is not asked on GPUs"
elif cc -O2 -D_GNU_SOURCE -I"$here/../.." "$here/kv/ucx_pages.c" -o "$out/ucx_pages" -lucp -lucs 2>"$out/ucx.log"; then
	kv_peers="$kv_peers ucx"
else
	echo "UCX is absent: its program was not built ($out/ucx.log)"
fi

echo "way,size,program,us,GBps" >"$out/kv.csv"
printf '%8s %8s %5s %12s %10s %20s\n' way page by "first, us" GB/s "least..most"
for way in ${WAYS:-$([ -n "$on" ] && echo mapped || echo mapped shm tcp softhca)}; do
	for size in ${SIZES:-4096 16384 65536 262144 2097152}; do
		for peer in each one $kv_peers; do : >"$out/kv.$peer"; done
		for ((round = 0; round < rounds; round++)); do
			for peer in each one $kv_peers; do "kv_$peer" "$way" "$size" >>"$out/kv.$peer"; done
		done
		us="" gbps=""
		for peer in each one nixl ucx; do
			f=absent b=absent spread=""
			[ ! -s "$out/kv.$peer" ] || {
				f=$(awk '{ print $2 }' "$out/kv.$peer" | median | cut -d' ' -f1)
				b=$(awk '{ print $3 }' "$out/kv.$peer" | median)
				spread=${b#* } b=${b%% *}
			}
			printf '%8s %8s %5s %12s %10s %20s\n' "$way" "$size" "$peer" "$f" "$b" "$spread"
			echo "$way,$size,$peer,$f,$b" >>"$out/kv.csv"
			[ $peer = each ] && { us="$f us" gbps="$b GB/s"; continue; }
			us="$us $peer $f" gbps="$gbps $peer $b"
		done
		result "kv_${way}_${size}_first $us"
		result "kv_${way}_$size $gbps"
		rm -f "$out"/kv.each "$out"/kv.one "$out"/kv.nixl "$out"/kv.ucx
	done
done
