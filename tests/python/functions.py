# SPDX-License-Identifier: BSD-3-Clause
"""What python/gdr_device.py says of the device functions, and python/gdr/ of structs, is what the headers say: the C
compiler takes it. Without a job; python3 functions.py."""
import ctypes
import os
import subprocess

import gdr_device
import gdr_kernel
from gdr import _host_ops, _library, _requests


def compiles(text):
    r = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                        *gdr_kernel._include(), "-x", "c", "-"], input=text, capture_output=True, text=True)
    return "" if not r.returncode else r.stderr


def refused(name, text):
    try:
        gdr_device.find(name, "test")
    except AttributeError as e:
        assert text in str(e), e
        return
    raise AssertionError(f"{name} is not refused")


def layout(name, c):
    """the struct of C is the one of Python: the library reads all of it"""
    same = [f"sizeof(struct {name}) == {ctypes.sizeof(c)}"]
    same += [f"offsetof(struct {name}, {f}) == {getattr(c, f).offset}" for f, _ in c._fields_ if f != "of_kind"]
    return "".join(f'_Static_assert({s}, "{name}");\n' for s in same)


def numbers():
    """what the requests are called, and where what is of a kind begins"""
    same = [f"GDRI_RQ_{n} == {v}" for n, v in vars(_requests).items() if n.isupper() and isinstance(v, int)]
    assert len(same) == 25, same
    same += [f"GDRI_AMO_{k.replace('compare_swap', 'cswap').upper()} == {v}" for k, v in _host_ops._KINDS.items()]
    same += [f"GDRI_WORDS_{k.upper()} == {v}" for k, v in _host_ops._HOW.items()]
    same += [f"GDRI_{k.upper()} == {v}" for k, v in _requests.OPS.items()]
    same += [f"GDRI_AMO_COMBINE == {_host_ops._COMBINE}", f"GDRI_WORDS_VECTOR == {_host_ops._VECTOR}",
             f"GDRI_WORDS_TEST == {_host_ops._TEST}", f"-GDR_ETIMEOUT == {_host_ops._ETIMEOUT}"]
    same += [f"offsetof(struct gdri_request, coll) == {_requests.Request.of_kind.offset}"]
    return "".join(f'_Static_assert({s}, "gdri_request");\n' for s in same)


said = compiles("#include <gdr.h>\n#include <gdr/impl/request/amo_kind.h>\n#include <gdr/impl/request/request.h>\n#include <stddef.h>\n" +
                layout("gdri_request", _requests.Request) + layout("gdr_init_attr", _library.Attr) +
                layout("gdri_rq_signal", _requests.Signal) + layout("gdri_rq_wait", _requests.Wait) +
                layout("gdri_rq_strided", _requests.Strided) + layout("gdri_rq_atomic", _requests.Atomic) +
                layout("gdri_rq_lock", _requests.Lock) + layout("gdri_rq_coll", _requests.Coll) + layout("gdr_error", _library.Record) + numbers())
assert not said, said[:2000]
functions = gdr_device.functions()
assert len(functions) > 5000, len(functions)
# of each prototype another type, of each family all scopes: every fifth one, and those of no type
some = [f for i, f in enumerate(functions.values()) if i % 5 == 0 or f.name.count("_") < 2]
said = compiles(gdr_device.text(f.c() for f in some))
assert not said, said[:2000]
f = functions["float_put_signal_block"]
assert [n for n, _, _ in f.params] == ["dst", "src", "n", "sig", "value", "op", "pe"]
assert "gdr_float_put" in compiles(gdr_device.text([f.c().replace("dst, src,", "dst,")]))
assert compiles(gdr_device.text([f.c().replace("float *src", "double *src")]))
# a kernel's PTX as Triton leaves it, with what it lacks
ptx = """.version 8.0
.target sm_80
.address_size 64

.extern .func  (.param .b32 func_retval0) gdrpy_my_pe
(
	.param .b32 gdrpy_my_pe_param_0
)
;
.extern .shared .align 16 .b8 global_smem[];
"""
try:
    full = gdr_device.complete(ptx, 80)
    assert ".visible .const .align 8 .b8 gdri_constants_here[" in full
    assert ".extern .func" not in full and ".align 1024 .b8 global_smem" in full
    assert ".func  (.param .b32 func_retval0) gdrpy_my_pe(" in full and full.count(".version") == 1
    assert gdr_device.complete(ptx.replace("gdrpy_", "other_"), 80).startswith(ptx[:20])
except OSError as e:
    print("no NVRTC:", e)
refused("float_puts", "no device function gdr_float_puts")
refused("half_g", "moved by put and get alone")
print(f"functions: all right, {len(some)} of {len(functions)}")
