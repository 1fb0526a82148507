#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A command that is a script.
exit 3
