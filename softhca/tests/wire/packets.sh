#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packets.sh SOFTHCA WIRE_PEER: what two hosts (namespaces joined by veth) send each other, captured
# and taken apart twice: by tshark, which must find nothing malformed and no bad checksum, and by
# decode.py, which also computes the ICRC. Every kind of packet has to be there.
set -u
me=packets
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../tests/launch/lib.sh"
. "$here/lib.sh"
softhca=$1 peer=$2
need_root "it makes network namespaces"
need tshark tshark
need tcpdump tcpdump
need python3 python3
need ip iproute2
make_dir packets

trap_all
two_hosts 4300

lossy() {
	local SOFTHCA_FAULTS='drop=0.02,seed=7'
	export SOFTHCA_FAULTS
	across -m 256 -s 70000 -n 2
}

# tshark's opinion. The payload is random: without the protocols that it would look for there. RoCEv2
# leaves the UDP checksum 0 over IPv6, too (RFC 6935).
dissected() { # FILE
	local p no=()
	for p in smc smb_direct rpcordma nvme-rdma lnet iser infiniband.eoib infiniband_sdp fcoib; do
		no+=(--disable-protocol "$p")
	done
	tshark "${no[@]}" -o infiniband.identify_payload:FALSE -r "$1" -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE \
		-o udp.ignore_ipv6_zero_checksum:TRUE \
		-Y 'not infiniband or _ws.malformed or _ws.expert.severity >= "Warning" or
		    ip.checksum.status == "Bad" or udp.checksum.status == "Bad"' \
		>"$dir/complaints" 2>"$dir/tshark" || { cat "$dir/tshark"; return 1; }
	head -n 20 "$dir/complaints"
	[ ! -s "$dir/complaints" ]
}

# tshark names what it sees, too.
named() { # FILE NAME...
	local name file=$1
	tshark -r "$file" -T fields -e _ws.col.Info 2>/dev/null | sort -u >"$dir/names"
	shift
	for name; do
		grep -qF "$name" "$dir/names" || { echo "no $name"; return 1; }
	done
}

sends="rc.SEND_FIRST rc.SEND_MIDDLE rc.SEND_LAST rc.SEND_LAST_IMM rc.SEND_ONLY rc.SEND_ONLY_IMM"
writes=${sends//SEND/WRITE}
reads="rc.READ_REQUEST rc.READ_FIRST rc.READ_MIDDLE rc.READ_LAST rc.READ_ONLY"
rest="rc.ACK rc.ATOMIC_ACK rc.CMP_SWAP rc.FETCH_ADD rc.SEND_LAST_INV rc.SEND_ONLY_INV"

check "every operation" capture "$dir/ops" across -m 1024 -s 70000
check "its packets, decoded" "$here/decode.py" "$dir/ops" $sends $writes $reads $rest
check "its packets, by tshark" dissected "$dir/ops"
check "their names, by tshark" named "$dir/ops" "RC Send First" "RC Send Last Immediate" \
	"RC Send Last Invalidate" "RC RDMA Write Only Immediate" "RC RDMA Read Response Middle" "RC Fetch Add" "RC Compare Swap" \
	"RC Atomic Acknowledge" "RC Acknowledge"

# The services without acknowledgements: connected, and datagrams of both IP versions.
unacknowledged() {
	across -t uc -m 1024 -s 70000 && across -t ud -m 1024 && across -t ud -m 4096 -g 1
}
check "UC and UD" capture "$dir/un" unacknowledged
uc=${sends//rc./uc.}
check "their packets, decoded" "$here/decode.py" "$dir/un" $uc ${uc//SEND/WRITE} ud.SEND_ONLY \
	ud.SEND_ONLY_IMM
check "their packets, by tshark" dissected "$dir/un"
check "their names, by tshark" named "$dir/un" "UC Send First" "UC Send Only Immediate" \
	"UC RDMA Write Last Immediate" "UC RDMA Write Only" "UD Send Only" "UD Send Only Immediate"

# What is wrong on purpose is not for strict mode.
refusals() {
	local -x SOFTHCA_STRICT=0
	across "$@"
}
check "every refusal" capture "$dir/naks" refusals -m 4096 \
	-o late_receive,bad_write,bad_read,bad_atomic,odd_atomic,short_receive,bad_receive,write
check "its packets, decoded" "$here/decode.py" "$dir/naks" rc.NAK_RNR rc.NAK_REMOTE_ACCESS \
	rc.NAK_INVALID_REQUEST rc.NAK_REMOTE_OPERATION
check "its packets, by tshark" dissected "$dir/naks"

check "loss" capture "$dir/loss" lossy
check "its packets, decoded" "$here/decode.py" "$dir/loss" rc.NAK_SEQUENCE
check "its packets, by tshark" dissected "$dir/loss"

# The judges judge: one changed bit of the payload, and of an opcode.
spoil() { # FROM TO OFFSET-FROM-END
	cp "$1" "$2"
	python3 -c "
import sys
f = open(sys.argv[1], 'r+b'); f.seek(-int(sys.argv[2]), 2); b = f.read(1)[0]
f.seek(-1, 1); f.write(bytes([b ^ int(sys.argv[3])]))" "$2" "$3" "$4"
}
spoil "$dir/naks" "$dir/bad" 9 1
check "a changed bit is seen" refused "$here/decode.py" "$dir/bad"
exit $bad
