# SPDX-License-Identifier: BSD-3-Clause
#
# What is made of the rows in the headers, in include/ and python/ of the build: the target gdr_generated. It is
# installed with the rest; in the source tree nothing of it stands. Takes a compiler, sh and awk; gdr_names.py takes Python.
set(GDR_GENERATED ${PROJECT_BINARY_DIR}/include)

set(stamp ${PROJECT_BINARY_DIR}/gdr_generated.stamp)
file(GLOB_RECURSE rows CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/device/*.h)
add_custom_command(OUTPUT ${stamp}
	COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER} ${PROJECT_SOURCE_DIR}/tools/generate ${PROJECT_BINARY_DIR}
	COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
	BYPRODUCTS ${GDR_GENERATED}/gdr/impl/api/names.h ${GDR_GENERATED}/gdr/compat/nvshmem_names.h
		${GDR_GENERATED}/gdr/compat/nvshmem_checked.h
	DEPENDS ${rows} ${PROJECT_SOURCE_DIR}/tools/families ${PROJECT_SOURCE_DIR}/tools/generate ${PROJECT_SOURCE_DIR}/tools/gen_names
		${PROJECT_SOURCE_DIR}/tools/gen_nvshmem ${PROJECT_SOURCE_DIR}/tools/gen_python
	COMMENT "Names of the typed functions" VERBATIM)
add_custom_target(gdr_generated ALL DEPENDS ${stamp})
target_include_directories(gdri_build INTERFACE ${GDR_GENERATED})
add_dependencies(gdri_build gdr_generated)
