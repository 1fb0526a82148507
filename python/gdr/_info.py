# SPDX-License-Identifier: BSD-3-Clause
"""The command gdr_info of the wheel: it becomes the program, which lies beside the library."""
import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "gdr_info")
    os.execv(program, ["gdr_info", *sys.argv[1:]])
