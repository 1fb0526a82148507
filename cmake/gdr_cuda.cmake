# SPDX-License-Identifier: BSD-3-Clause
#
# gdr_add_cuda_object(name source.c) compiles a source that is C11 and CUDA C with nvcc, for sm_80, for
# sm_90 and as PTX; warnings are errors. The objects are part of the default build; nothing links them.
# GDR_CUDA: OFF never, ON an error without nvcc, AUTO when nvcc is there.
include_guard(GLOBAL)

set(GDR_NVCC "")
if(GDR_CUDA)
	find_program(GDR_NVCC_PROGRAM nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
	if(GDR_NVCC_PROGRAM)
		set(GDR_NVCC ${GDR_NVCC_PROGRAM})
		message(STATUS "CUDA objects: compiled with ${GDR_NVCC}")
	elseif(GDR_CUDA STREQUAL "ON")
		message(FATAL_ERROR "GDR_CUDA=ON, but nvcc was not found (CUDA_HOME, PATH)")
	endif()
endif()
if(NOT GDR_NVCC)
	message(STATUS "CUDA objects: NOT COMPILED, there is no nvcc (CUDA_HOME, PATH) or GDR_CUDA=OFF; "
		"the host device is not affected")
endif()

function(gdr_add_cuda_object name source)
	if(NOT GDR_NVCC)
		return()
	endif()
	set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o)
	set(ptx ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx)
	set(flags -std=c++17 -O2 -Werror all-warnings -Xcompiler -Wall -I${PROJECT_SOURCE_DIR}
		-I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/device -fmad=false -x cu)
	add_custom_command(OUTPUT ${object}
		COMMAND ${GDR_NVCC} ${flags} -gencode arch=compute_80,code=sm_80
			-gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90
			-MD -MF ${object}.d -c ${source} -o ${object}
		DEPENDS ${source} DEPFILE ${object}.d
		COMMENT "CUDA ${name} (sm_80, sm_90)" VERBATIM)
	add_custom_command(OUTPUT ${ptx}
		COMMAND ${GDR_NVCC} ${flags} -arch=compute_80 -MD -MF ${ptx}.d -ptx ${source} -o ${ptx}
		DEPENDS ${source} DEPFILE ${ptx}.d
		COMMENT "CUDA ${name} (PTX)" VERBATIM)
	add_custom_target(cuda_${name} ALL DEPENDS ${object} ${ptx})
endfunction()

# gdr_add_cuda_test(name source.c [library..]): the same for programs that only a machine with GPUs can
# use: the target cuda_tests builds them, for the GPU of the machine; with GDR_WERROR warnings are errors.
function(gdr_add_cuda_test name source)
	if(NOT GDR_NVCC)
		return()
	endif()
	if(NOT TARGET cuda_tests)
		add_custom_target(cuda_tests)
	endif()
	set(dir ${CMAKE_CURRENT_BINARY_DIR}/cuda)
	set(strict "")
	if(GDR_WERROR)
		set(strict -Werror all-warnings)
	endif()
	file(MAKE_DIRECTORY ${dir})
	add_custom_command(OUTPUT ${dir}/${name}
		COMMAND ${GDR_NVCC} ${strict} -std=c++17 -O2 -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include
			-I${PROJECT_SOURCE_DIR}/device -D_GNU_SOURCE -arch=native -MD -MF ${dir}/${name}.d
			-o ${dir}/${name} -x cu ${source} -Xlinker $<TARGET_LINKER_FILE:gdr>
			-Xlinker -rpath,$<TARGET_FILE_DIR:gdr> ${ARGN}
		DEPENDS ${source} gdr DEPFILE ${dir}/${name}.d
		COMMENT "CUDA test ${name}" VERBATIM)
	add_custom_target(cuda_test_${name} DEPENDS ${dir}/${name})
	add_dependencies(cuda_tests cuda_test_${name})
endfunction()

# gdr_add_cuda_program(name source.c [library..]): the object linked with libgdr, as cuda/<name> in the
# current build directory. What it does needs a GPU.
function(gdr_add_cuda_program name source)
	if(NOT GDR_NVCC)
		return()
	endif()
	gdr_add_cuda_object(${name} ${source})
	set(dir ${CMAKE_CURRENT_BINARY_DIR}/cuda)
	file(MAKE_DIRECTORY ${dir})
	add_custom_command(OUTPUT ${dir}/${name}
		COMMAND ${GDR_NVCC} -o ${dir}/${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o
			$<TARGET_LINKER_FILE:gdr> -Xlinker -rpath,$<TARGET_FILE_DIR:gdr> ${ARGN}
		DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o gdr
		COMMENT "CUDA program ${name}" VERBATIM)
	add_custom_target(cuda_program_${name} ALL DEPENDS ${dir}/${name})
	add_dependencies(cuda_program_${name} cuda_${name})
endfunction()
