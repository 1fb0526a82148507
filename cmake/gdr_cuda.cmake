# SPDX-License-Identifier: BSD-3-Clause
#
# gdr_add_cuda_object(name source.c) compiles a source that is C11 and CUDA C with nvcc, for each
# architecture and as PTX; warnings are errors. The objects are part of the default build; nothing links them.
# GDR_CUDA: OFF never, ON an error without nvcc, AUTO when nvcc is there. One older than GDR_CUDA_LEAST is none.
# GDR_CUDA_ARCH: what for. Empty: sm_80, sm_90 and PTX, tests for the GPU of this machine alone (sm_90 where
# there is none). Or numbers, "90" or "90;100": for these alone, tests too, whatever this machine has. Or native: for
# the GPUs of this machine.
include_guard(GLOBAL)

set(GDR_CUDA_LEAST 11.8) # docs/cuda.md, "Releases of CUDA"
set(GDR_NVCC "")
set(why "GDR_CUDA=OFF")
if(GDR_CUDA)
	set(why "there is no nvcc (CUDA_HOME, PATH)")
	find_program(GDR_NVCC_PROGRAM nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
	if(GDR_NVCC_PROGRAM)
		execute_process(COMMAND ${GDR_NVCC_PROGRAM} --version OUTPUT_VARIABLE release)
		string(REGEX REPLACE ".*release ([0-9.]+).*" "\\1" release "${release}")
		if(release VERSION_LESS GDR_CUDA_LEAST)
			set(why "${GDR_NVCC_PROGRAM} is of CUDA ${release}, and gdr takes ${GDR_CUDA_LEAST} or later (CUDA_HOME, PATH)")
		else()
			set(GDR_NVCC ${GDR_NVCC_PROGRAM})
			message(STATUS "CUDA objects: compiled with ${GDR_NVCC}, of CUDA ${release}")
		endif()
	endif()
	if(GDR_CUDA STREQUAL "ON" AND NOT GDR_NVCC)
		message(FATAL_ERROR "GDR_CUDA=ON, but ${why}")
	endif()
endif()
if(NOT GDR_NVCC)
	message(STATUS "CUDA objects: NOT COMPILED, ${why}; the host device is not affected")
endif()

# The numbers that "native" stands for.
function(gdr_native_arch out)
	execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
		OUTPUT_VARIABLE numbers RESULT_VARIABLE failed ERROR_QUIET)
	string(REGEX MATCHALL "[0-9]+\\.[0-9]+" numbers "${numbers}")
	if(failed OR NOT numbers)
		message(FATAL_ERROR "GDR_CUDA_ARCH=native, but nvidia-smi names no GPU of this machine: "
			"write the number, as -DGDR_CUDA_ARCH=90, or leave the option away")
	endif()
	string(REPLACE "." "" numbers "${numbers}")
	list(REMOVE_DUPLICATES numbers)
	set(${out} ${numbers} PARENT_SCOPE)
endfunction()

# All that only a machine with GPUs can run: tests/multi/on_gpus.
if(GDR_NVCC)
	add_custom_target(cuda_tests)
endif()

set(GDR_NVCC_ARCH -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
	-gencode arch=compute_90,code=compute_90)
set(GDR_NVCC_ARCH_TEXT "sm_80, sm_90, PTX")
set(GDR_NVCC_PTX_ARCH 80)
set(GDR_NVCC_TEST_ARCH -arch=native)
if(GDR_NVCC AND GDR_CUDA_ARCH)
	set(numbers ${GDR_CUDA_ARCH})
	if(GDR_CUDA_ARCH STREQUAL native)
		gdr_native_arch(numbers)
	endif()
	set(GDR_NVCC_ARCH "")
	foreach(arch IN LISTS numbers)
		list(APPEND GDR_NVCC_ARCH -gencode arch=compute_${arch},code=sm_${arch})
	endforeach()
	list(JOIN numbers ", sm_" GDR_NVCC_ARCH_TEXT)
	string(PREPEND GDR_NVCC_ARCH_TEXT "sm_")
	list(GET numbers 0 GDR_NVCC_PTX_ARCH)
	set(GDR_NVCC_TEST_ARCH ${GDR_NVCC_ARCH})
elseif(NOT EXISTS /dev/nvidiactl)
	set(GDR_NVCC_TEST_ARCH -arch=sm_90)
endif()
if(GDR_NVCC AND NOT GDR_CUDA_ARCH)
	message(STATUS "CUDA objects: for ${GDR_NVCC_ARCH_TEXT}; each of the three costs about two minutes of one core "
		"before libgdr is linked. -DGDR_CUDA_ARCH=native: for the GPUs of this machine alone, -DGDR_CUDA=OFF: none")
endif()

function(gdr_add_cuda_object name source)
	set_property(GLOBAL APPEND PROPERTY GDR_CUDA_SOURCES ${source})
	if(NOT GDR_NVCC)
		return()
	endif()
	set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o)
	set(ptx ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx)
	set(flags -std=c++17 -O2 -Werror all-warnings -Xcompiler -Wall -I${PROJECT_SOURCE_DIR}
		-I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/device -I${GDR_GENERATED} -fmad=false -x cu)
	add_custom_command(OUTPUT ${object}
		COMMAND ${GDR_NVCC} ${flags} ${GDR_NVCC_ARCH} --threads 0
			-MD -MF ${object}.d -c ${source} -o ${object}
		DEPENDS ${source} gdr_generated DEPFILE ${object}.d
		COMMENT "CUDA ${name} (${GDR_NVCC_ARCH_TEXT})" VERBATIM)
	add_custom_command(OUTPUT ${ptx}
		COMMAND ${GDR_NVCC} ${flags} -arch=compute_${GDR_NVCC_PTX_ARCH} -MD -MF ${ptx}.d -ptx ${source} -o ${ptx}
		DEPENDS ${source} gdr_generated DEPFILE ${ptx}.d
		COMMENT "CUDA ${name} (PTX)" VERBATIM)
	add_custom_target(cuda_${name} ALL DEPENDS ${object} ${ptx})
endfunction()

# gdr_add_cuda_link(program object [library..]): links it with libgdr, which it finds from where it lies: a
# build directory can be moved.
function(gdr_add_cuda_link program object)
	cmake_path(GET program PARENT_PATH dir)
	set(rpath $<PATH:RELATIVE_PATH,$<TARGET_FILE_DIR:gdr>,${dir}>)
	add_custom_command(OUTPUT ${program}
		# nvcc has a shell expand it once more
		COMMAND ${CMAKE_COMMAND} -E env "ORIGIN=$ORIGIN" ${GDR_NVCC} -o ${program} ${object}
			$<TARGET_LINKER_FILE:gdr> -Xlinker "-rpath,$ORIGIN/${rpath}" ${ARGN}
		DEPENDS ${object} gdr
		COMMENT "CUDA program ${program}" VERBATIM)
endfunction()

# gdr_add_cuda_test(name source.c [LINKED] [NO_HOST] [flag..] [-llibrary..]): a program that only a machine with GPUs can
# use. LINKED: as relocatable device code, with libgdr_device.a. NO_HOST: there is no form for the host device. The target
# cuda_tests builds them; with GDR_WERROR warnings are errors. Objects do not wait for libgdr, whose own kernels take the
# compiler a while.
function(gdr_add_cuda_test name source)
	if(NO_HOST IN_LIST ARGN)
		set_property(GLOBAL APPEND PROPERTY GDR_CUDA_SOURCES_NO_HOST ${source})
	else()
		set_property(GLOBAL APPEND PROPERTY GDR_CUDA_SOURCES ${source})
	endif()
	if(NOT GDR_NVCC)
		return()
	endif()
	set(dir ${CMAKE_CURRENT_BINARY_DIR}/cuda)
	set(object ${dir}/${name}.o)
	set(strict "")
	if(GDR_WERROR)
		set(strict -Werror all-warnings)
	endif()
	set(libraries ${ARGN})
	list(FILTER libraries INCLUDE REGEX "^-l")
	set(flags ${ARGN})
	list(FILTER flags EXCLUDE REGEX "^-l|^LINKED$|^NO_HOST$")
	set(archive)
	if(LINKED IN_LIST ARGN)
		list(APPEND flags -rdc=true -DGDR_DEVICE_LIBRARY)
		set(archive ${GDR_DEVICE_ARCHIVE})
		list(APPEND libraries ${archive} ${GDR_NVCC_TEST_ARCH})
	endif()
	file(MAKE_DIRECTORY ${dir})
	add_custom_command(OUTPUT ${object}
		COMMAND ${GDR_NVCC} ${strict} -std=c++17 -O2 -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include
			-I${PROJECT_SOURCE_DIR}/device -I${GDR_GENERATED} -D_GNU_SOURCE ${GDR_NVCC_TEST_ARCH} ${flags}
			-MD -MF ${object}.d -c -o ${object} -x cu ${source}
		DEPENDS ${source} gdr_generated DEPFILE ${object}.d
		COMMENT "CUDA test ${name}" VERBATIM)
	add_custom_target(cuda_object_${name} DEPENDS ${object})
	gdr_add_cuda_link(${dir}/${name} ${object} ${libraries})
	add_custom_target(cuda_test_${name} DEPENDS ${dir}/${name})
	add_dependencies(cuda_test_${name} cuda_object_${name})
	if(archive)
		add_dependencies(cuda_test_${name} gdr_device)
	endif()
	add_dependencies(cuda_tests cuda_test_${name})
endfunction()

# gdr_add_cuda_program(name source.c [library..]): the object linked with libgdr, as cuda/<name> in the
# current build directory. What it does needs a GPU; cuda_tests builds it, too.
function(gdr_add_cuda_program name source)
	gdr_add_cuda_object(${name} ${source})
	if(NOT GDR_NVCC)
		return()
	endif()
	set(dir ${CMAKE_CURRENT_BINARY_DIR}/cuda)
	file(MAKE_DIRECTORY ${dir})
	gdr_add_cuda_link(${dir}/${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o ${ARGN})
	add_custom_target(cuda_program_${name} ALL DEPENDS ${dir}/${name})
	add_dependencies(cuda_program_${name} cuda_${name})
	add_dependencies(cuda_tests cuda_program_${name})
endfunction()
