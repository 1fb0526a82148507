# SPDX-License-Identifier: BSD-3-Clause
#
# NVSHMEM's package over libgdr: nvshmem::nvshmem_host, nvshmem::nvshmem_device, nvshmem::nvshmem.
get_filename_component(NVSHMEM_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(NVSHMEM_INCLUDE_DIR "${NVSHMEM_PREFIX}/include")
set(NVSHMEM_INCLUDE_DIRS "${NVSHMEM_INCLUDE_DIR}")
set(NVSHMEM_LIBRARY_DIR "${NVSHMEM_PREFIX}/lib")

if(NOT TARGET nvshmem::nvshmem_host)
	add_library(nvshmem::nvshmem_host SHARED IMPORTED)
	set_target_properties(nvshmem::nvshmem_host PROPERTIES
		IMPORTED_LOCATION "${NVSHMEM_LIBRARY_DIR}/libnvshmem_host.so.3"
		IMPORTED_SONAME libnvshmem_host.so.3
		INTERFACE_INCLUDE_DIRECTORIES "${NVSHMEM_INCLUDE_DIR}"
		INTERFACE_LINK_LIBRARIES "${NVSHMEM_LIBRARY_DIR}/libgdr.so")
	add_library(nvshmem::nvshmem_device STATIC IMPORTED)
	set_target_properties(nvshmem::nvshmem_device PROPERTIES
		IMPORTED_LOCATION "${NVSHMEM_LIBRARY_DIR}/libnvshmem_device.a"
		INTERFACE_INCLUDE_DIRECTORIES "${NVSHMEM_INCLUDE_DIR}"
		INTERFACE_LINK_LIBRARIES nvshmem::nvshmem_host)
	add_library(nvshmem::nvshmem INTERFACE IMPORTED)
	set_target_properties(nvshmem::nvshmem PROPERTIES
		INTERFACE_LINK_LIBRARIES "nvshmem::nvshmem_host;nvshmem::nvshmem_device")
endif()
set(NVSHMEM_LIBRARIES nvshmem::nvshmem_host nvshmem::nvshmem_device)
