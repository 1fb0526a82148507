# SPDX-License-Identifier: BSD-3-Clause
# Debian packages of what is installed, a component each: cmake --build BUILD --target package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "the gdr authors")
set(CPACK_PACKAGE_CONTACT "the gdr authors <gdr@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/gdr_package_pages.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/host)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
	WORLD_READ WORLD_EXECUTE)

# Policy: every package has its copyright and what changed.
set(changelog ${PROJECT_BINARY_DIR}/changelog.gz)
execute_process(COMMAND sh -c "
	printf 'gdr (${PROJECT_VERSION}) unstable; urgency=medium\\n\\n  * See CHANGELOG.md of gdr-doc.\\n\\n' &&
	printf ' -- ${CPACK_PACKAGE_CONTACT}  %s\\n' \"$(date -Ru -r '${PROJECT_SOURCE_DIR}/CHANGELOG.md')\""
	COMMAND gzip -9n OUTPUT_FILE ${changelog})

set(library libgdr${PROJECT_VERSION_MAJOR})
set(same "(= ${PROJECT_VERSION})")
set(CPACK_COMPONENTS_ALL)
function(gdri_package component package section depends short text)
	string(TOUPPER ${component} upper)
	set(p CPACK_DEBIAN_${upper}_PACKAGE_)
	list(APPEND CPACK_COMPONENTS_ALL ${component})
	set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
	set(${p}NAME ${package} PARENT_SCOPE)
	set(${p}SECTION ${section} PARENT_SCOPE)
	set(${p}DEPENDS "${depends}" PARENT_SCOPE)
	set(CPACK_COMPONENT_${upper}_DESCRIPTION "${short}\n${text}" PARENT_SCOPE)
	set(to ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package})
	set(when COMPONENT ${component} EXCLUDE_FROM_ALL)
	install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${to} ${when} RENAME copyright)
	install(FILES ${changelog} DESTINATION ${to} ${when})
endfunction()

gdri_package(library ${library} libs "" "GPU-initiated PGAS runtime"
	"A symmetric heap of registered GPU memory, and RDMA that CUDA kernels\npost themselves, with no CPU in the path.")
gdri_package(development libgdr-dev libdevel "${library} ${same}" "GPU-initiated PGAS runtime, headers"
	"What programs that use gdr are compiled with: headers, device library,\npackage files of CMake and pkg-config.")
gdri_package(tools gdr-tools utils "${library} ${same}" "GPU-initiated PGAS runtime, tools"
	"gdr_info says what a job would run on, and with --check what the machine\nlacks; gdr_hardware_kit how its NIC differs from softhca.")
# What is opened at run time, or run by some of the tools alone.
if(GDR_LIBFABRIC)
	set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libfabric1)
endif()
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "softhca, python3")
if(TARGET gdr_mpi)
	gdri_package(mpi libgdr-mpi${PROJECT_VERSION_MAJOR} libs "${library} ${same}" "GPU-initiated PGAS runtime, init by MPI"
		"For programs that hand an MPI communicator to gdr_init.")
endif()
if(TARGET softhca)
	gdri_package(softhca softhca utils "ibverbs-providers" "ConnectX in user space"
		"Stands in for an mlx5 device and its kernel driver below unmodified\nlibibverbs, on a machine without one.")
endif()
gdri_package(doc gdr-doc doc "" "GPU-initiated PGAS runtime, documents"
	"Man pages and documents of gdr.")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
# CPack's own way to write these looks into each file, and there are thousands of pages.
foreach(component library mpi)
	string(TOUPPER ${component} upper)
	set(extra ${PROJECT_BINARY_DIR}/${component})
	file(WRITE ${extra}/triggers "activate-noawait ldconfig\n")
	set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${extra}/triggers ${extra}/shlibs)
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/library/shlibs "libgdr ${PROJECT_VERSION_MAJOR} ${library} ${same}\n")
file(WRITE ${PROJECT_BINARY_DIR}/mpi/shlibs "libgdr_mpi ${PROJECT_VERSION_MAJOR} libgdr-mpi${PROJECT_VERSION_MAJOR} ${same}\n")
include(CPack)
