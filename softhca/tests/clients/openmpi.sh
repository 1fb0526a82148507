#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# openmpi.sh SOFTHCA [quick|full [FILTER]]: Open MPI over UCX over softhca, its OpenSHMEM too, and without UCX:
# its own verbs code (openib), and libfabric's. MPI_DATA and SHMEM_DATA name the programs, which check what
# they receive. Nothing goes past the device: its counters say so.
set -u
. "$(dirname "$0")/lib.sh"
: "${MPI_DATA:?names the program}" "${SHMEM_DATA:?names the other}"
need mpirun
own_network
begin
export MPIRUN_FLAGS="--mca pml ucx --mca osc ucx --mca spml ucx --mca atomic ucx --mca sshmem mmap
	--mca btl ^openib,tcp,vader,sm"
export SHMEM_SYMMETRIC_SIZE=8M
export UCX_NET_DEVICES=mlx5_0:1

# run PROGRAM TRANSPORTS RANKS: every rank is content, and posted something.
run() {
	local program=$1 n=$3
	local name="${program##*/} $2 on $n"
	[[ $name =~ $filter ]] || return 0
	cases=$((cases + 1))
	rm -f "$dir/stats"
	why="exit status"
	: >"$dir/server"
	if UCX_TLS=$2,self LIMIT=$LIMIT SOFTHCA_STATS=$dir/stats \
		"$here/../../../tests/launch/mpirun_here" "$n" "$softhca" "$program" >"$dir/client" 2>&1 &&
		used "$n"; then
		echo "ok     $name"
	else
		failed "$name" "UCX_TLS=$2 mpirun -n $n $program"
	fi
}

used() { # RANKS
	why="no word that all is well"
	grep -qE "^(mpi_data: $1 ranks|shmem_data: $1 PEs), all as it has to be" "$dir/client" || return 1
	why="warnings"
	! grep -qE 'UCX +(WARN|ERROR)' "$dir/client" || return 1
	why="not $1 processes that posted: $(cat "$dir/stats")"
	[[ $(grep -cE '^pid [0-9]+ wqes [1-9]' "$dir/stats") == "$1" ]]
}

mpi() { run "$MPI_DATA" "$@"; }
shmem() { run "$SHMEM_DATA" "$@"; }

# without RANKS COMPONENT FLAG...: not over UCX.
without() {
	local n=$1 component=$2
	shift 2
	MPIRUN_FLAGS="$*" run "$MPI_DATA" "$component" "$n"
}

# Its connections come about over UD, which wants an InfiniBand link. It knows no speed above HDR.
openib() { # RANKS
	SOFTHCA_LINK=ib without "$1" openib --mca pml ob1 --mca btl openib,self --mca osc rdma,pt2pt \
		--mca btl_openib_allow_ib 1 --mca btl_openib_bandwidth 100000 \
		--mca btl_openib_warn_no_device_params_found 0
}

ofi() { # RANKS
	without "$1" ofi --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs --mca osc pt2pt
}

mpi rc_verbs,ud_verbs 2
mpi rc_mlx5,ud_mlx5 2
if full; then
	mpi ud_verbs 2
	mpi ud_mlx5 2
	shmem ud_mlx5 2
	for n in 3 4; do
		mpi rc_verbs,ud_verbs $n
		mpi rc_mlx5,ud_mlx5 $n
	done
	for n in 2 3 4; do
		shmem rc_verbs,ud_verbs $n
		shmem rc_mlx5,ud_mlx5 $n
		openib $n
	done
	ofi 2
fi
finish
