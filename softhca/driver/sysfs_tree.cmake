# SPDX-License-Identifier: BSD-3-Clause
# Writes the sysfs trees of the emulated ConnectX-7 to SOFTHCA_SYSFS_DIR, and beside it for more
# devices, at configure time. sysfs.h names the same devices. Files whose content depends on the host
# or on SOFTHCA_LINK (GID, GUIDs, LID, link layer, state) hold what a reader gets that reaches them
# without the interposers; the others see sysfs.c.

set(pci_root devices/pci50fc:00/50fc:00:01.0)

function(softhca_sysfs dir)
	while(ARGN)
		list(POP_FRONT ARGN name value)
		file(WRITE ${dir}/${name} "${value}\n")
	endwhile()
endfunction()

# Function i of the card, in the tree root.
function(softhca_sysfs_device root i)
	set(bdf 50fc:01:00.${i})
	set(pci ${root}/${pci_root}/${bdf})
	set(ib ${pci}/infiniband/mlx5_${i})
	set(uv ${pci}/infiniband_verbs/uverbs${i})
	math(EXPR minor "192 + ${i}")
	math(EXPR address "1 + ${i}")
	softhca_sysfs(${pci}
		vendor 0x15b3 device 0x1021 subsystem_vendor 0x15b3 subsystem_device 0x0001
		class 0x020700 revision 0x00 numa_node -1 local_cpulist 0-4095
		current_link_speed "32.0 GT/s PCIe" max_link_speed "32.0 GT/s PCIe"
		current_link_width 16 max_link_width 16
		modalias pci:v000015B3d00001021sv000015B3sd00000001bc02sc00i00
		uevent "DRIVER=mlx5_core\nPCI_CLASS=20700\nPCI_ID=15B3:1021\nPCI_SLOT_NAME=${bdf}")
	softhca_sysfs(${ib}
		node_type "1: CA" node_guid 5254:0${i}ff:fe00:0001 sys_image_guid 5254:00ff:fe00:0001
		node_desc softhca fw_ver 28.39.1002 hca_type MT4129 hw_rev 0
		board_id SOFTHCA0000001)
	softhca_sysfs(${ib}/ports/1
		state "4: ACTIVE" phys_state "5: LinkUp" rate "400 Gb/sec (4X NDR)"
		link_layer Ethernet lid 0x0 lid_mask_count 0 sm_lid 0x0 sm_sl 0 cap_mask 0x00010000
		pkeys/0 0xffff gids/0 0000:0000:0000:0000:0000:ffff:7f00:000${address}
		gid_attrs/types/0 "RoCE v2" gid_attrs/ndevs/0 lo)
	foreach(entry RANGE 1 15)
		softhca_sysfs(${ib}/ports/1 gids/${entry} 0000:0000:0000:0000:0000:0000:0000:0000
			gid_attrs/types/${entry} "" gid_attrs/ndevs/${entry} "")
	endforeach()
	softhca_sysfs(${uv} ibdev mlx5_${i} dev 231:${minor} abi_version 1)
	set(rel ../../${pci_root}/${bdf})
	file(CREATE_LINK ../.. ${ib}/device SYMBOLIC)
	file(CREATE_LINK ../.. ${uv}/device SYMBOLIC)
	file(CREATE_LINK ${rel}/infiniband/mlx5_${i} ${root}/class/infiniband/mlx5_${i} SYMBOLIC)
	file(CREATE_LINK ${rel}/infiniband_verbs/uverbs${i}
		${root}/class/infiniband_verbs/uverbs${i} SYMBOLIC)
	file(CREATE_LINK ../../../class/infiniband ${pci}/subsystem SYMBOLIC)
	file(CREATE_LINK ../${rel} ${root}/bus/pci/devices/${bdf} SYMBOLIC)
endfunction()

# One tree for each number of devices: sysfs, sysfs-2, ... Written once, so that what runs from a
# build does not lose its devices when the build is configured again.
file(SHA256 ${CMAKE_CURRENT_LIST_FILE} made)
set(stamp ${SOFTHCA_SYSFS_DIR}.made)
set(was "")
if(EXISTS ${stamp})
	file(READ ${stamp} was)
endif()
foreach(n RANGE 1 4)
	set(root ${SOFTHCA_SYSFS_DIR})
	if(n GREATER 1)
		string(APPEND root -${n})
	endif()
	list(APPEND SOFTHCA_SYSFS_TREES ${root})
	if(was STREQUAL made AND IS_DIRECTORY ${root})
		continue()
	endif()
	file(REMOVE ${stamp}) # what is left half written is written again
	file(REMOVE_RECURSE ${root})
	softhca_sysfs(${root}/class/infiniband_verbs abi_version 6)
	file(MAKE_DIRECTORY ${root}/class/infiniband ${root}/bus/pci/devices)
	math(EXPR last "${n} - 1")
	foreach(i RANGE ${last})
		softhca_sysfs_device(${root} ${i})
	endforeach()
endforeach()
file(WRITE ${stamp} "${made}")
