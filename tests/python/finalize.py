# SPDX-License-Identifier: BSD-3-Clause
"""What an Error says, where the library has no record, and where finalize() ends a job in which a call failed."""
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


os.environ["GDR_HEAP_SIZE"] = "many"
text = failed(gdr.init)
assert text.startswith("init: invalid value of a GDR_ option (GDR_HEAP_SIZE=many "), text
del os.environ["GDR_HEAP_SIZE"]
gdr.init(heap_size=16 << 20)
text = failed(gdr.zeros, 1 << 30)
assert text.startswith("zeros: ") and " (symmetric heap: no room for 4294967296 bytes" in text, text
a = gdr.zeros(1, "int64")
waited = failed(gdr.wait, a, gdr.GT, 1)
assert "gdr_host_TYPE_wait_until" in waited
stderr = os.dup(2)
with tempfile.TemporaryFile() as f:
    os.dup2(f.fileno(), 2)
    text = failed(gdr.finalize)
    os.dup2(stderr, 2)
    f.seek(0)
    said = f.read().decode()
why = waited[waited.index("(") + 1:]
assert text == f"finalize: time limit expired (the job has ended without waiting for other PEs, since {why}", text
assert "gdr_errors" not in said, said
print("all right")
