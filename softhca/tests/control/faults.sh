#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# faults.sh SOFTHCA PROGRAM: each part of test_faults under the schedule that it expects.
set -eu
"$1" --faults='refuse mr 2; refuse qp after 1; refuse umem 2' "$2" refuse
"$1" --faults='link down at wqe 0 for 700ms' "$2" link
"$1" --faults='first_wqe=0xfff8,first_cqe=0xfffff8' "$2" counters
