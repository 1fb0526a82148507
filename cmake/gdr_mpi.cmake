# SPDX-License-Identifier: BSD-3-Clause
#
# MPI is optional: MPI_C_FOUND and the target MPI::MPI_C, for every directory.
# Debian's openmpi-bin brings mpicc, and libopenmpi-dev the header. FindMPI asks mpicc first and stops
# with an error where the header is not there, so whether the header compiles is asked before.
include_guard(GLOBAL)

find_program(GDR_MPICC NAMES mpicc mpiicc mpicc.openmpi mpicc.mpich HINTS $ENV{MPI_HOME}/bin)
set(MPI_C_FOUND FALSE)
foreach(compiler IN LISTS MPI_C_COMPILER GDR_MPICC CMAKE_C_COMPILER)
	if(compiler)
		# With the project's compiler below, which need not be the one that mpicc calls.
		execute_process(COMMAND ${CMAKE_COMMAND} -E env OMPI_CC=${CMAKE_C_COMPILER}
			MPICH_CC=${CMAKE_C_COMPILER} ${compiler} -E -include mpi.h -x c /dev/null
			RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
		if(refused EQUAL 0)
			find_package(MPI COMPONENTS C)
			break()
		endif()
	endif()
endforeach()
if(NOT MPI_C_FOUND)
	message(STATUS "MPI: left out, mpi.h does not compile (package libopenmpi-dev): "
		"no init by communicator, no tests with MPI programs")
endif()
