# SPDX-License-Identifier: BSD-3-Clause
# GDR_VERSION, from the header: the one place that has it.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../include/gdr/version.h lines REGEX "^#define GDR_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
string(REGEX REPLACE "#define GDR_VERSION_[A-Z]+ ([0-9]+)" "\\1" GDR_VERSION "${lines}")
string(REPLACE ";" "." GDR_VERSION "${GDR_VERSION}")
