# SPDX-License-Identifier: BSD-3-Clause
# How the project's C is compiled; softhca, which builds alone too, includes it as well.
get_filename_component(GDR_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
option(GDR_WERROR "Warnings are errors" OFF)
set(GDR_SANITIZE "" CACHE STRING "Sanitizers: address;undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_UNITY_BUILD OFF) # sources have static names and macros in common
include(GNUInstallDirs)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Another project may have any warnings, as errors, and cannot mend these sources.
set(warnings -w)
if(PROJECT_IS_TOP_LEVEL)
	set(warnings -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
		-Wvla -Wformat=2 -Wundef $<$<BOOL:${GDR_WERROR}>:-Werror>)
endif()
# Every target of the project links this one.
add_library(gdri_build INTERFACE)
target_compile_options(gdri_build INTERFACE ${warnings})
target_include_directories(gdri_build INTERFACE
	${GDR_ROOT} ${GDR_ROOT}/include ${GDR_ROOT}/device)
target_link_libraries(gdri_build INTERFACE Threads::Threads)
foreach(s IN LISTS GDR_SANITIZE)
	# -O1 and line numbers alone halve the time that sanitized builds take.
	add_compile_options(-fsanitize=${s} -fno-omit-frame-pointer -O1 -g1)
	add_link_options(-fsanitize=${s})
endforeach()
