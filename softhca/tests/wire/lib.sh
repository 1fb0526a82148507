# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the scripts of this directory, after launch/lib.sh: checks, two hosts (network namespaces
# joined by veth) with wire_peer across and captures, a guest whose kernel has rdma_rxe at the other end
# of a tap. Bash. The script sets me, dir, softhca and peer, and calls trap_all.
# shellcheck shell=bash disable=SC2154,SC2034

clean_up() {
	[ -z "$(jobs -p)" ] || kill $(jobs -p) 2>/dev/null
	end_guest
	drop_ns
	end_strays
	rm -rf "$dir"
}

bad=0
# check WHAT COMMAND...: what the command says is shown when it fails.
check() {
	local what=$1
	shift
	if "$@" >"$dir/check" 2>&1; then
		echo "ok   $what"
	else
		echo "BAD  $what"
		tail -n 40 "$dir/check" | sed "s/^/     /"
		bad=1
	fi
}

refused() {
	! "$@"
}

# make_ns NAME...: namespaces of this run; drop_ns removes them.
namespaces=()
make_ns() {
	local n
	for n; do
		ip netns add "$n" || skip "no network namespaces here"
		namespaces+=("$n")
		ip -n "$n" link set lo up
	done
}

drop_ns() {
	local n
	for n in "${namespaces[@]}"; do
		ip netns del "$n"
	done
}

# join_ns A B MTU: eth0 of each is an end of a veth pair, 10.98.0.1 and .2, fd98::1 and ::2.
join_ns() {
	local n i=0
	ip link add eth0 netns "$1" type veth peer name eth0 netns "$2" || skip "no veth here"
	for n in "$1" "$2"; do
		i=$((i + 1))
		ip -n "$n" link set eth0 mtu "$3"
		ip -n "$n" addr add 10.98.0.$i/24 dev eth0
		ip -n "$n" addr add fd98::$i/64 dev eth0 nodad
		ip -n "$n" link set eth0 up
	done
	x_addr=10.98.0.1 y_addr=10.98.0.2
}

# two_hosts MTU: makes and joins $x and $y.
two_hosts() {
	x=${me:0:2}x$$ y=${me:0:2}y$$
	make_ns "$x" "$y"
	join_ns "$x" "$y" "$1"
	port=18700
}

# on NAMESPACE COMMAND...: on softhca, behind the words in plain (without_raw: no CAP_NET_RAW).
plain=()
without_raw=(setpriv --bounding-set -net_raw --inh-caps -net_raw)
on() {
	timeout $((60 * slow)) ip netns exec "$1" "${plain[@]}" "$softhca" "${@:2}"
}

# across ARGUMENT...: wire_peer, the server at host x (on_x: further arguments), the client at y.
on_x=()
across() {
	local server
	port=$((port + 1))
	on "$x" "$peer" -p $port "$@" "${on_x[@]}" &
	server=$!
	on "$y" "$peer" -p $port "$@" "$x_addr" && wait $server
}

# capture FILE COMMAND...: what passes at host x meanwhile.
capture() {
	local file=$1 status left=100
	shift
	ip netns exec "$x" tcpdump -U --immediate-mode -B 32768 -i eth0 -s 0 -w "$file" \
		udp port 4791 2>"$dir/tcpdump" &
	local dump=$!
	until grep -q 'listening on' "$dir/tcpdump"; do
		[ $((left -= 1)) -gt 0 ] && is_alive $dump || return 1
		sleep 0.1
	done
	"$@"
	status=$?
	sleep 0.2
	kill -INT $dump
	wait $dump
	return $status
}

# await_port NAMESPACE PORT: until somebody listens there.
await_port() {
	local left=200
	until ip netns exec "$1" cat /proc/net/tcp /proc/net/tcp6 |
		grep -q ":$(printf %04X "$2") .* 0A "; do
		[ $((left -= 1)) -gt 0 ] || return 1
		sleep 0.05
	done
}

# boot_guest NAMESPACE MTU: the namespace is 10.99.0.1 and fd99::1, the guest 10.99.0.2 and fd99::2.
boot_guest() {
	local ns=$1 mtu=$2
	ip -n "$ns" tuntap add dev tap0 mode tap &&
		ip -n "$ns" link set tap0 mtu "$mtu" &&
		ip -n "$ns" addr add 10.99.0.1/24 dev tap0 &&
		ip -n "$ns" addr add fd99::1/64 dev tap0 nodad &&
		ip -n "$ns" link set tap0 up || skip "no tap device here"
	mkfifo "$dir/ctl.in" "$dir/ctl.out"
	exec 8<>"$dir/ctl.in" 9<>"$dir/ctl.out"
	# Plain emulation: /dev/kvm may be there and not work.
	ip netns exec "$ns" qemu-system-x86_64 -accel tcg -m 512 -smp 1 -display none -monitor none \
		-no-reboot -kernel "$guest_dir/vmlinuz" -initrd "$guest_dir/initrd" \
		-append "console=ttyS0 quiet panic=-1 guest_mtu=$mtu guest_addr4=10.99.0.2/24 guest_addr6=fd99::2/64" \
		-serial "file:$dir/console" -chardev "pipe,id=ctl,path=$dir/ctl" \
		-device virtio-serial-pci -device virtserialport,chardev=ctl,name=ctl \
		-netdev tap,id=n,ifname=tap0,script=no,downscript=no \
		-device "virtio-net-pci,netdev=n,host_mtu=$mtu" \
		</dev/null >"$dir/qemu" 2>&1 8<&- 9<&- &
	guest_pid=$!
	guest_answer $((240 * slow)) && return
	tail -n 20 "$dir/qemu" "$dir/console"
	fail "the guest did not start"
}

end_guest() {
	[ -n "${guest_pid:-}" ] || return 0
	kill -KILL "$guest_pid" 2>/dev/null
	wait "$guest_pid" 2>/dev/null
	guest_pid=
}

# Prints what the guest says to the present command and returns its status.
guest_answer() { # SECONDS
	local part line= until=$((SECONDS + $1))
	while [ $SECONDS -lt "$until" ] && is_alive "$guest_pid"; do
		IFS= read -r -t 1 part <&9 || { # the second may end in the middle of a line
			line+=$part
			continue
		}
		line+=$part
		case $line in
		'rc '*) return "${line#rc }" ;;
		*) printf '%s\n' "$line" ;;
		esac
		line=
	done
	echo "the guest does not answer"
	return 124
}

# guest COMMAND: a line of shell, run in the guest.
guest() {
	printf '%s\n' "$*" >&8
	guest_answer $((100 * slow))
}
