# SPDX-License-Identifier: BSD-3-Clause
# docs/options.md is what gdr_info generates.
execute_process(COMMAND ${PROGRAM} --markdown OUTPUT_VARIABLE generated RESULT_VARIABLE rc)
file(READ ${DOC} written)
if(NOT rc EQUAL 0 OR NOT generated STREQUAL written)
	message(FATAL_ERROR "${DOC} differs from the option table: tools/gen_options writes it")
endif()
