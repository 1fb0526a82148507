#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# --nodes=N: ranks in equal parts; without a rank, or with one node, the host's own name.
set -u
softhca=$1
name=$(uname -n)
bad=0

expect() { # want, option, environment...
	local want=$1 option=$2 got
	shift 2
	got=$(env -u PMIX_RANK -u PMI_RANK -u SLURM_LOCALID -u OMPI_COMM_WORLD_LOCAL_RANK "$@" \
		"$softhca" $option python3 -c 'import socket; print(socket.gethostname())')
	[ "$got" = "$want" ] && return
	echo "$option $*: \"$got\", not \"$want\""
	bad=1
}

command -v python3 >/dev/null || { echo "no python3"; exit 77; }
for rank in 0 1 2 3; do
	expect "$name-node$((rank / 2))" --nodes=2 OMPI_COMM_WORLD_LOCAL_RANK=$rank \
		OMPI_COMM_WORLD_LOCAL_SIZE=4
done
expect "$name-node1" --nodes=2 PMIX_RANK=3
expect "$name" --nodes=2 X=1
expect "$name" --nodes=1 PMIX_RANK=1
text='SOFTHCA_NODES=2 (--nodes) has no effect on this process'
env -u PMIX_RANK -u PMI_RANK -u SLURM_LOCALID -u OMPI_COMM_WORLD_LOCAL_RANK "$softhca" --nodes 2 ibv_devinfo 2>&1 |
	grep -qF "$text" || { echo "without a rank nothing says: $text"; bad=1; }
PMIX_RANK=1 "$softhca" --nodes=2 ibv_devinfo 2>&1 | grep -F "$text" && bad=1
exit $bad
