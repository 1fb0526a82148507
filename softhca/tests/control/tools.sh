#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own listing tools, both link layers; the files of sysfs that other tools read.
set -u
softhca=$1
bad=0
want() {
	local what=$1 text=$2
	if ! grep -qE "$text" <<<"$out"; then
		echo "FAILED: $what: no line like \"$text\" in:"
		echo "$out"
		bad=1
	fi
}

out=$("$softhca" ibv_devices) || bad=1
want ibv_devices 'mlx5_0 +[[:space:]]*5254'
for link in eth ib; do
	out=$("$softhca" --link=$link ibv_devinfo -v) || bad=1
	want ibv_devinfo 'vendor_part_id:[[:space:]]*4129'
	want ibv_devinfo 'state:[[:space:]]*PORT_ACTIVE'
	want ibv_devinfo 'max_mtu:[[:space:]]*4096'
	want ibv_devinfo 'atomic_cap:[[:space:]]*ATOMIC_HCA'
	if [[ $link == eth ]]; then
		want ibv_devinfo 'link_layer:[[:space:]]*Ethernet'
		want ibv_devinfo 'GID\[ *0\]:.*RoCE v2'
	else
		want ibv_devinfo 'link_layer:[[:space:]]*InfiniBand'
		want ibv_devinfo 'port_lid:[[:space:]]*1'
		want ibv_devinfo 'GID\[ *0\]:[[:space:]]*fe80:'
	fi
done
out=$("$softhca" --link=ib cat /sys/class/infiniband/mlx5_0/ports/1/link_layer \
	/sys/class/infiniband/mlx5_0/device/vendor /sys/class/infiniband/mlx5_0/device/numa_node)
want cat InfiniBand
want cat 0x15b3
want cat '^-1$'
out=$(SOFTHCA_MTU=1024 "$softhca" ibv_devinfo)
want SOFTHCA_MTU 'active_mtu:[[:space:]]*1024'
exit $bad
