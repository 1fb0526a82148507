# SPDX-License-Identifier: BSD-3-Clause
# Writes the sysfs tree of the emulated ConnectX-7 to SOFTHCA_SYSFS_DIR, at
# configure time. sysfs.h names the same device. Files whose content depends on
# the host or on SOFTHCA_LINK (GID, GUIDs, LID, link
# layer, state) hold what a reader
# gets that reaches them without the interposers; the others see sysfs.c.

set(pci ${SOFTHCA_SYSFS_DIR}/devices/pci50fc:00/50fc:00:01.0/50fc:01:00.0)
set(ib ${pci}/infiniband/mlx5_0)
set(uv ${pci}/infiniband_verbs/uverbs0)

function(softhca_sysfs dir)
	while(ARGN)
		list(POP_FRONT ARGN name value)
		file(WRITE ${dir}/${name} "${value}\n")
	endwhile()
endfunction()

file(REMOVE_RECURSE ${SOFTHCA_SYSFS_DIR})
softhca_sysfs(${pci}
	vendor 0x15b3 device 0x1021 subsystem_vendor 0x15b3 subsystem_device 0x0001
	class 0x020700 revision 0x00 numa_node -1 local_cpulist 0-4095
	current_link_speed "32.0 GT/s PCIe" max_link_speed "32.0 GT/s PCIe"
	current_link_width 16 max_link_width 16
	modalias pci:v000015B3d00001021sv000015B3sd00000001bc02sc00i00
	uevent "DRIVER=mlx5_core\nPCI_CLASS=20700\nPCI_ID=15B3:1021\nPCI_SLOT_NAME=50fc:01:00.0")
softhca_sysfs(${ib}
	node_type "1: CA" node_guid 5254:00ff:fe00:0001 sys_image_guid 5254:00ff:fe00:0001
	node_desc softhca fw_ver 28.39.1002 hca_type MT4129 hw_rev 0 board_id SOFTHCA0000001)
softhca_sysfs(${ib}/ports/1
	state "4: ACTIVE" phys_state "5: LinkUp" rate "400 Gb/sec (4X NDR)" link_layer Ethernet
	lid 0x0 lid_mask_count 0 sm_lid 0x0 sm_sl 0 cap_mask 0x00010000
	pkeys/0 0xffff gids/0 0000:0000:0000:0000:0000:ffff:7f00:0001
	gid_attrs/types/0 "RoCE v2")
softhca_sysfs(${uv} ibdev mlx5_0 dev 231:192 abi_version 1)
softhca_sysfs(${SOFTHCA_SYSFS_DIR}/class/infiniband_verbs abi_version 6)

file(MAKE_DIRECTORY ${SOFTHCA_SYSFS_DIR}/class/infiniband ${SOFTHCA_SYSFS_DIR}/bus/pci/devices)
set(rel ../../devices/pci50fc:00/50fc:00:01.0/50fc:01:00.0)
file(CREATE_LINK ../.. ${ib}/device SYMBOLIC)
file(CREATE_LINK ../.. ${uv}/device SYMBOLIC)
file(CREATE_LINK ${rel}/infiniband/mlx5_0 ${SOFTHCA_SYSFS_DIR}/class/infiniband/mlx5_0 SYMBOLIC)
file(CREATE_LINK ${rel}/infiniband_verbs/uverbs0
	${SOFTHCA_SYSFS_DIR}/class/infiniband_verbs/uverbs0 SYMBOLIC)
file(CREATE_LINK ../../../class/infiniband ${pci}/subsystem SYMBOLIC)
file(CREATE_LINK ../${rel} ${SOFTHCA_SYSFS_DIR}/bus/pci/devices/50fc:01:00.0 SYMBOLIC)
