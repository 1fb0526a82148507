# SPDX-License-Identifier: BSD-3-Clause
"""listen.py RECORD RUN_TESTS [ARGUMENT...]: runs a program of Python's unittest and appends to RECORD what became of each
test, a line of JSON: [id, ok | skipped | failed | error, reason]."""
import json
import os
import runpy
import sys
import unittest

RECORD = sys.argv.pop(1)


class Result(unittest.TextTestResult):
    def note(self, test, what, reason=""):
        with open(RECORD, "a", encoding="utf-8") as f:
            f.write(json.dumps([test.id(), what, str(reason)]) + "\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", err[1])

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", err[1])


unittest.TextTestRunner.resultclass = Result
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
