# SPDX-License-Identifier: BSD-3-Clause
#
# gdr_add_test(NAME n [SOURCES s.c..] [PES 2 4] [TRANSPORTS p2p nic] [QUICK nic.2 p2p.3]
#              [SUFFIX x] [LABELS l..] [ENV A=B..] [ARGS a..] [TIMEOUT seconds] [LIBS t..]
#              [UNCHECKED])
#
# Builds the program multi_<n> once, of <n>.c in a folder of the caller's or of SOURCES (UNCHECKED:
# multi_<n>_unchecked, without GDR_CHECKED), and registers, for each PE count and transport, the test
# multi.<n>[.<x>].<transport>.<pes>: the program under mpirun, below it softhca where one of the words is nic.
# Exit status 0 passes, 77 skips, everything else fails.
#
# The quick profile runs what has no label `full`. With QUICK only the listed transport.pes are
# quick; without it all are.
#
# gdr_add_script_test(NAME area.n COMMAND c.. [LABELS l..] [ENV A=B..] [TIMEOUT seconds] [SERIAL] [REFUSED text])
# registers anything else under the same rules. The first word of COMMAND may be the name of a target; behind it programs
# are $<TARGET_FILE:name>. REFUSED: gdr_init of COMMAND must fail: it passes when COMMAND ends with status 1 and says text.
#
# Every test is inside tests/launch/enclose, which bounds it in time and ends all that it started with it. TIMEOUT,
# and GDR_TIMEOUT and GDR_INIT_TIMEOUT in ENV, are those of a quiet machine; enclose stretches them by how crowded
# this one is, and scripts and programs multiply times of their own by TEST_SLOW (1 to 16), which it sets.
#
# gdr_test_runs(out labels) says whether tests of these labels can run in this build, and
# gdr_test_uses(labels target..) that one of them needs these programs: GDR_TEST_PROFILE=quick, and the
# sanitizers, leave away those that no test needs.
#
# Labels that choose: full (not quick), plain (only in the plain build), style, notasan, nottsan, and
# waits: hardly uses a core, so that run-tests runs it beside the others; judges: on request, see
# softhca/tests/judges, so that run-tests leaves it out.

# Of the tests that want the cores one runs at a time: they are started first, so that others can run
# beside each of them to the end.
set(GDR_COST_ALONE 1000)

find_program(GDR_MPIRUN mpirun)
set(GDR_TEST_PROFILE full CACHE STRING "Build the programs of these tests: quick or full")
set_property(CACHE GDR_TEST_PROFILE PROPERTY STRINGS quick full)

add_executable(enclose)
target_sources(enclose PRIVATE ${GDR_ROOT}/tests/launch/enclose.c
	${GDR_ROOT}/tests/launch/enclosure.c ${GDR_ROOT}/tests/launch/slow.c)
target_compile_definitions(enclose PRIVATE _GNU_SOURCE)
target_compile_options(enclose PRIVATE -fno-sanitize=all)
target_link_options(enclose PRIVATE -fno-sanitize=all)
target_link_libraries(enclose PRIVATE gdri_build)

# Environment of every test: what a sanitizer needs, and strict mode: what hardware would punish ends a
# process on softhca with this status. Its times in seconds, where the test sets none.
# Peers that are gone are to be noticed within half a second.
set(GDR_TEST_ENV TEST_GENERATED=${GDR_GENERATED} SOFTHCA_STRICT=1 SOFTHCA_ERROR_EXITCODE=86 GDR_ACK_TIMEOUT=14)
set(GDR_TEST_TIMES GDR_TIMEOUT=20 GDR_INIT_TIMEOUT=40)
if("address" IN_LIST GDR_SANITIZE)
	list(APPEND GDR_TEST_ENV
		"ASAN_OPTIONS=detect_stack_use_after_return=0:abort_on_error=0:exitcode=99"
		"LSAN_OPTIONS=suppressions=${GDR_ROOT}/tests/lsan.supp:print_suppressions=0"
		"UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:exitcode=99")
endif()
if("thread" IN_LIST GDR_SANITIZE)
	# Several instrumented PEs on two cores: an engine may not run for more than the 0.5 s that the
	# retries take in tests, and of 8 PEs the last may reach a barrier after more than 20 s.
	set(GDR_TEST_TIMES GDR_TIMEOUT=100 GDR_INIT_TIMEOUT=100)
	list(TRANSFORM GDR_TEST_ENV REPLACE "^GDR_ACK_TIMEOUT=14$" GDR_ACK_TIMEOUT=17)
	list(APPEND GDR_TEST_ENV
		"TSAN_OPTIONS=suppressions=${GDR_ROOT}/tests/tsan.supp:exitcode=99:halt_on_error=0")
endif()

# The words before a program that run it as N PEs, bounded by the test's limit alone.
function(gdr_launch_command out pes transport)
	set(cmd env LIMIT=0 ${GDR_ROOT}/tests/launch/mpirun_here ${pes})
	string(REPLACE "+" ";" words "${transport}")
	if("nic" IN_LIST words)
		list(APPEND cmd $<TARGET_FILE:softhca_launcher>)
	endif()
	set(${out} ${cmd} PARENT_SCOPE)
endfunction()

# The checked build and the ring CQ belong to every test that does not say otherwise: UNCHECKED,
# ENV GDR_CQ=one.
function(gdr_test_program target checked)
	target_link_libraries(${target} PRIVATE gdri_build gdr)
	target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
	if(checked)
		target_compile_definitions(${target} PRIVATE GDR_CHECKED=1)
	endif()
	if(checked AND TARGET test_header_checked)
		target_precompile_headers(${target} REUSE_FROM test_header_checked)
	elseif(TARGET test_header)
		target_precompile_headers(${target} REUSE_FROM test_header)
	endif()
endfunction()

function(gdr_test_runs out labels)
	set(${out} ON PARENT_SCOPE)
	if((GDR_SANITIZE AND "plain" IN_LIST labels) OR
			("thread" IN_LIST GDR_SANITIZE AND "nottsan" IN_LIST labels) OR
			("address" IN_LIST GDR_SANITIZE AND "notasan" IN_LIST labels) OR
			(GDR_TEST_PROFILE STREQUAL quick AND "full" IN_LIST labels))
		set(${out} OFF PARENT_SCOPE)
	endif()
endfunction()

function(gdr_test_uses labels)
	gdr_test_runs(runs "${labels}")
	foreach(target IN LISTS ARGN)
		if(runs)
			set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL OFF)
		endif()
	endforeach()
endfunction()

# gdr_test_source(out file): where it is, in a folder of the caller's.
function(gdr_test_source out file)
	file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/${file})
	list(LENGTH found n)
	if(NOT n EQUAL 1)
		message(FATAL_ERROR "${file}: ${n} files of that name below ${CMAKE_CURRENT_SOURCE_DIR}")
	endif()
	set(${out} ${found} PARENT_SCOPE)
endfunction()

function(gdr_add_test)
	cmake_parse_arguments(T "UNCHECKED" "NAME;TIMEOUT;SUFFIX"
		"SOURCES;PES;TRANSPORTS;QUICK;LABELS;ENV;ARGS;LIBS" ${ARGN})
	if(NOT T_TIMEOUT)
		set(T_TIMEOUT 60)
	endif()
	if(NOT T_PES)
		set(T_PES 2)
	endif()
	if(NOT T_TRANSPORTS)
		set(T_TRANSPORTS p2p nic)
	endif()
	set(target multi_${T_NAME})
	if(T_UNCHECKED)
		string(APPEND target _unchecked)
	endif()
	if(NOT TARGET ${target})
		if(NOT T_SOURCES)
			gdr_test_source(T_SOURCES ${T_NAME}.c)
		endif()
		add_executable(${target} ${T_SOURCES})
		if(T_UNCHECKED)
			gdr_test_program(${target} OFF)
		else()
			gdr_test_program(${target} ON)
		endif()
		target_link_libraries(${target} PRIVATE ${T_LIBS})
		set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
	endif()
	# Instrumented builds: two PEs where two are enough, the first of the list elsewhere.
	if(GDR_SANITIZE AND T_QUICK)
		list(GET T_QUICK 0 first)
		list(FILTER T_QUICK INCLUDE REGEX "\\.2$")
		if(NOT T_QUICK)
			set(T_QUICK ${first})
		endif()
	endif()
	foreach(transport IN LISTS T_TRANSPORTS)
		foreach(pes IN LISTS T_PES)
			set(name multi.${T_NAME})
			if(T_SUFFIX)
				string(APPEND name .${T_SUFFIX})
			endif()
			string(APPEND name .${transport}.${pes})
			set(labels multi ${transport} ${T_LABELS})
			if(GDR_SANITIZE AND pes GREATER 3) # instrumented PEs want cores
				list(APPEND labels full)
			elseif(T_QUICK AND NOT "${transport}.${pes}" IN_LIST T_QUICK)
				list(APPEND labels full)
			endif()
			gdr_test_uses("${labels}" ${target})
			string(REPLACE "+" "," transports ${transport})
			gdr_launch_command(cmd ${pes} ${transport})
			gdr_add_script_test(NAME ${name} SERIAL LABELS ${labels} TIMEOUT ${T_TIMEOUT}
				COMMAND ${cmd} $<TARGET_FILE:${target}> ${T_ARGS}
				ENV GDR_CQ=ring GDR_TRANSPORTS=${transports} ${T_ENV})
		endforeach()
	endforeach()
endfunction()

function(gdr_add_script_test)
	cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT;REFUSED" "COMMAND;LABELS;ENV" ${ARGN})
	if(NOT T_TIMEOUT)
		set(T_TIMEOUT 120)
	endif()
	if(GDR_SANITIZE)
		math(EXPR T_TIMEOUT "${T_TIMEOUT} * 3")
	endif()
	set(times ${T_ENV} ${GDR_TEST_TIMES}) # the first of a name is taken
	list(FILTER times INCLUDE REGEX "^GDR_(INIT_)?TIMEOUT=[0-9]+s?$")
	list(TRANSFORM times REPLACE "s$" "")
	list(FILTER T_ENV EXCLUDE REGEX "^GDR_(INIT_)?TIMEOUT=[0-9]+s$")
	list(POP_FRONT T_COMMAND program)
	if(TARGET ${program})
		set(program $<TARGET_FILE:${program}>)
	endif()
	if(T_REFUSED)
		set(program ${GDR_ROOT}/tests/launch/refused ${T_REFUSED} ${program})
	endif()
	add_test(NAME ${T_NAME}
		COMMAND enclose ${T_TIMEOUT} ${times} ${program} ${T_COMMAND})
	math(EXPR outer "${T_TIMEOUT} * 16 + 120") # should enclose itself be stuck
	set_tests_properties(${T_NAME} PROPERTIES LABELS "${T_LABELS}" SKIP_RETURN_CODE 77
		TIMEOUT ${outer} ENVIRONMENT "${GDR_TEST_ENV};${T_ENV}")
	if(T_SERIAL)
		set_tests_properties(${T_NAME} PROPERTIES RESOURCE_LOCK cores COST ${GDR_COST_ALONE})
	endif()
endfunction()
