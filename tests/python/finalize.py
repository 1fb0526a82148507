# SPDX-License-Identifier: BSD-3-Clause
"""finalize() that fails says why, and nothing besides."""
import os
import tempfile

os.environ["GDR_TIMEOUT"] = "100ms"
import gdr  # noqa: E402


def failed(call, *args) -> str:
    try:
        call(*args)
    except gdr.Error as e:
        return str(e)
    raise AssertionError(f"{call.__name__} did not fail")


gdr.init(heap_size=16 << 20)
a = gdr.zeros(1, "int64")
assert "gdr_host_TYPE_wait_until" in failed(gdr.wait, a, gdr.GT, 1)
stderr = os.dup(2)
with tempfile.TemporaryFile() as f:
    os.dup2(f.fileno(), 2)
    text = failed(gdr.finalize)
    os.dup2(stderr, 2)
    f.seek(0)
    said = f.read().decode()
assert text == "finalize: time limit expired", text
assert "gdr_errors" not in said, said
print("all right")
