# SPDX-License-Identifier: BSD-3-Clause
"""gdr's device functions in kernels of Triton:

    @triton.jit
    def ring(to, arrived, status):
        me = gdr_triton.my_pe()
        n = gdr_triton.n_pes()
        tl.store(status, gdr_triton.int32_p(to, 1000 + me, (me + 1) % n))
        gdr_triton.fence()
        gdr_triton.signal_op(arrived, 1, gdr_triton.ADD, (me + 1) % n)
        gdr_triton.signal_wait_until(arrived, gdr_triton.GE, 1)

    ring[(1,)](*(torch.as_tensor(x, device="cuda") for x in (to, arrived, status)))     # of gdr.zeros()

gdr_triton.NAME is gdr_NAME, whatever it is, and a program calls it once: without suffix one thread of the program does it, _warp
its first warp, _block all of them; all see what the program stored before, and the result. Arguments are scalars: pointers, of
which p + i is a part, and numbers. Not where a kernel's warps do different things (warp_specialize). What a kernel uses is
compiled by NVRTC and put into its PTX, before Triton's ptxas reads it. Needs Triton 3.5."""
import functools
import hashlib
import os

import gdr
import gdr_device
import gdr_kernel

_have = gdr_device.version("triton")
if not _have or _have < (3, 5):
    raise ImportError(f"gdr_triton needs Triton 3.5 or later, {'%d.%d' % _have if _have else 'none'} is installed: "
                      "pip install triton")

import triton.language as tl  # noqa: E402
from triton import knobs  # noqa: E402
from triton.backends.nvidia import compiler  # noqa: E402

EQ, NE, GT, GE, LT, LE = (tl.constexpr(i) for i in range(6))
SET, ADD = tl.constexpr(gdr.SET), tl.constexpr(gdr.ADD)
WORLD, SHARED, NODE = tl.constexpr(gdr.WORLD), tl.constexpr(gdr.SHARED), tl.constexpr(gdr.NODE)

# ---- where Triton compiles and loads ----

@functools.cache
def _digest():
    """of all that goes into a kernel beside its own text"""
    h = hashlib.sha256()
    here = os.path.dirname(os.path.abspath(__file__))
    for root in [d[2:] for d in gdr_kernel._include()]:
        for folder, _, files in sorted(os.walk(os.path.join(root, "gdr"))):
            for name in sorted(files):
                with open(os.path.join(folder, name), "rb") as f:
                    h.update(f.read())
    sources = [os.path.join(here, name) for name in ("gdr_triton.py", "gdr_device.py", "gdr_kernel.py")]
    for path in [*sources, gdr_device.gdr_names.__file__]:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def _stages(before):
    def hook(*args, **kw):
        if not args and not kw:  # newer versions ask for a key so
            key, digest = before() if before else ("", "")
            return key + "gdr", digest + _digest()
        if before:
            before(*args, **kw)
        stages, capability = args[1], args[4]
        make = stages.get("ptx")
        if make:
            stages["ptx"] = lambda src, metadata: gdr_device.complete(make(src, metadata), capability)
    return hook


knobs.runtime.add_stages_inspection_hook = _stages(knobs.runtime.add_stages_inspection_hook)
knobs.runtime.kernel_load_end_hook.add(lambda module, *_: gdr_device.module_init(module))
_hash = compiler.CUDABackend.hash
compiler.CUDABackend.hash = lambda self: f"{_hash(self)}-gdr-{_digest()}"


# ---- what a kernel calls ----

def _argument(semantic, f, name, want, pointer, given):
    """the handle of a scalar; pointers as numbers"""
    x = semantic.to_tensor(given)
    if x.type.is_block():
        raise ValueError(f"{f.name}: {name} is one number or pointer, not a block of {x.type.shape}")
    if not pointer:
        return semantic.cast(x, getattr(tl, want)).handle
    if not x.dtype.is_ptr() and not x.dtype.is_int():
        raise ValueError(f"{f.name}: {name} is a pointer, not {x.dtype}")
    if x.dtype.is_ptr() and want and x.dtype.element_ty.name.lstrip("u") != _SHORT.get(want, want).lstrip("u"):
        raise ValueError(f"{f.name}: {name} is a pointer to {want}, not to {x.dtype.element_ty.name}")
    return semantic.cast(x, tl.int64).handle


_SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}


def _make(f):
    names = [n for n, _, _ in f.params]
    result = tl.int64 if f.result == "address" else getattr(tl, f.result)

    @tl.core.builtin
    def call(*args, _semantic=None, **words):
        given = dict(zip(names, args), **words)
        if len(args) > len(names) or sorted(given) != sorted(names):
            raise ValueError(f"{f.name} takes {', '.join(names) or 'nothing'}")
        at = [_argument(_semantic, f, *p, given[p[0]]) for p in f.params] or [_semantic.to_tensor(0).handle]
        b = _semantic.builder
        return tl.tensor(b.create_extern_elementwise("", "", f.symbol, at, result.to_ir(b), False), result)
    call.__name__ = call.__qualname__ = f.name
    return call


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    function = globals()[name] = _make(gdr_device.find(name, __name__))
    return function
