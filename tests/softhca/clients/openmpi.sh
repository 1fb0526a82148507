#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# openmpi.sh SOFTHCA [quick|full [FILTER]]: Open MPI over UCX over softhca. MPI_DATA names the program,
# which checks what it receives. Nothing goes past the device: its counters say so.
set -u
. "$(dirname "$0")/lib.sh"
: "${MPI_DATA:?names the program}"
need mpirun
own_network
begin
export MPIRUN_FLAGS="--mca pml ucx --mca osc ucx --mca btl ^openib,tcp,vader,sm"
export UCX_NET_DEVICES=mlx5_0:1

# mpi TRANSPORTS RANKS ARGUMENT...: every rank says that it is content, and posted something.
mpi() {
	local name="mpi $1 on $2${*:3:1}" n=$2
	[[ $name =~ $filter ]] || return 0
	cases=$((cases + 1))
	rm -f "$dir/stats"
	why="exit status"
	: >"$dir/server"
	if UCX_TLS=$1,self LIMIT=$LIMIT SOFTHCA_STATS=$dir/stats \
		"$here/../../launch/mpirun_here" "$n" "$softhca" "$MPI_DATA" "${@:3}" \
		>"$dir/client" 2>&1 && used "$n"; then
		echo "ok     $name"
	else
		failed "$name" "UCX_TLS=$1 mpirun -n $n $MPI_DATA ${*:3}"
	fi
}

used() { # RANKS
	why="no word that all is well"
	grep -q "^mpi_data: $1 ranks, all as it has to be" "$dir/client" || return 1
	why="warnings"
	! grep -qE 'UCX +(WARN|ERROR)' "$dir/client" || return 1
	why="not $1 processes that posted: $(cat "$dir/stats")"
	[[ $(grep -cE '^pid [0-9]+ wqes [1-9]' "$dir/stats") == "$1" ]]
}

mpi rc_verbs,ud_verbs 2
mpi rc_mlx5,ud_mlx5 2
if full; then
	mpi ud_verbs 2
	mpi ud_mlx5 2
	for n in 3 4; do
		mpi rc_verbs,ud_verbs $n
		mpi rc_mlx5,ud_mlx5 $n
	done
fi
finish
