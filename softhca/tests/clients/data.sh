#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# data.sh SOFTHCA [quick|full [FILTER]]: verbs_data (VERBS_DATA names it): every operation with random
# sizes, pieces, queue pairs, posted and polled in every way; all memory is compared.
set -u
. "$(dirname "$0")/lib.sh"
: "${VERBS_DATA:?names the program}"
own_network
begin

compared() {
	why="$1: not all rounds compared"
	grep -q '^verbs_data: .* all memory as it has to be$' "$1"
}

# data ARGUMENT...
data() {
	try "verbs_data${*:+ $*}${label:-}" compared "$VERBS_DATA" "$@"
}

# A byte that changes is found.
spoiled() {
	why="$1: a wrong byte was not found"
	grep -q '^round 0: 1 of [0-9]* bytes are wrong' "$1"
}
finds_a_wrong_byte() {
	[[ finds_a_wrong_byte =~ $filter ]] || return 0
	cases=$((cases + 1))
	if ! pair "$VERBS_DATA" -B -n 1 && spoiled "$dir/client"; then
		echo "ok     finds a wrong byte"
	else
		failed "finds a wrong byte" "$VERBS_DATA -B -n 1"
	fi
}

everything() {
	local api events rest
	for api in "" -N; do
		for events in "" -e; do
			for rest in "" -R -L "-R -L" "-I 0 -S 8" "-S 1 -d 4" "-q 1 -l 16 -d 128" \
				"-q 64 -o 1000"; do
				# shellcheck disable=SC2086 # words
				data $api $events $rest -r $((cases + 100))
			done
		done
	done
	for rest in 256 512 1024 2048 4096; do
		data -m $rest -r $rest
		data -m $rest -s 70000 -n 5 -N -r $rest
		data -m $rest -s 64 -I 400 -n 30 -r $rest
	done
	data -s 1048576 -n 4 -m 4096
	data -s 1048576 -n 4 -m 4096 -N -e -R -o 60
	data -s 4194304 -n 2 -q 2 -o 20
	data -M -s 4194304 -n 2 -q 2 -o 20
	data -M -s 1048576 -n 4 -m 4096 -N -e -R -o 60
	data -M -m 4096 -s 200000 -n 20 -L
	data -n 100 -r 77
	data -U -n 5
	data -U -N -e -n 5 -m 4096
	for rest in "" -e -L "-q 1" "-q 64 -o 1000" "-m 4096 -s 1048576 -n 4 -o 60" "-m 256 -l 1"; do
		# shellcheck disable=SC2086 # words
		data -D $rest -r $((cases + 100))
	done
	# The same under loss, doubling and changed order: late answers, repeated requests.
	for rest in 1 2 3; do
		label=" with loss" SOFTHCA_FAULTS="drop=0.01,reorder=0.02,dup=0.01,seed=$rest" \
			data -n 5 -r $rest
		label=" with loss" SOFTHCA_FAULTS="drop=0.01,reorder=0.02,dup=0.01,seed=$rest" \
			data -n 5 -N -R -L -m 256 -r $rest
		label=" with loss" SOFTHCA_FAULTS="drop=0.01,reorder=0.02,dup=0.01,seed=$rest" \
			data -D -n 5 -L -m 256 -r $rest
	done
	label=" on ib" SOFTHCA_LINK=ib data -N
	label=" on ib" SOFTHCA_LINK=ib data -D
	label=" by sockets" SOFTHCA_SHM=0 data -D
}

data
data -N -e -R -L -m 4096
data -D -L -n 5
full && everything
finds_a_wrong_byte
finish
