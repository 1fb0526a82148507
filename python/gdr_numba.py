# SPDX-License-Identifier: BSD-3-Clause
"""gdr's device functions in kernels of Numba:

    @numba.cuda.jit
    def ring(to, arrived, status):
        me, n = gdr_numba.my_pe(), gdr_numba.n_pes()
        status[0] = gdr_numba.int32_p(to, 1000 + me, (me + 1) % n)
        gdr_numba.fence()
        gdr_numba.signal_op(arrived, 1, gdr.ADD, (me + 1) % n)
        gdr_numba.signal_wait_until(arrived, gdr.GE, 1)

    ring[1, 1](*map(numba.cuda.as_cuda_array, (to, arrived, status)))      # of gdr.zeros()

gdr_numba.NAME is gdr_NAME, whatever it is. Where that takes a pointer: an array, of the type in the name, without steps, of
which a[i:] is a part; or an address, as a number. ptr and team_ptr of an array are the array at the other PE, or one without
elements. Needs numba-cuda 0.30; with nvJitLink, which is its default, the functions become part of the kernel."""
import ctypes
import inspect

import gdr_device
import gdr_kernel

_have = gdr_device.version("numba-cuda")
if not _have or _have < (0, 30):
    raise ImportError(f"gdr_numba needs numba-cuda 0.30 or later, {'%d.%d' % _have if _have else 'none'} is installed: "
                      "pip install numba-cuda")

from llvmlite import ir  # noqa: E402
from numba import cuda  # noqa: E402
from numba.cuda import cgutils, config, types  # noqa: E402
from numba.cuda.core import errors  # noqa: E402
from numba.cuda.descriptor import cuda_target  # noqa: E402
from numba.cuda.extending import intrinsic  # noqa: E402
from numba.cuda.typing import signature  # noqa: E402


def _module(code):
    """the CUmodule of what Numba loaded, a CUlibrary or a CUmodule"""
    handle = getattr(code, "handle", code)
    handle, kind = int(getattr(handle, "value", handle)), type(handle).__name__
    if "library" not in kind.lower():
        return handle
    module = ctypes.c_void_p()
    gdr_kernel._cuda("cuLibraryGetModule",
                     gdr_kernel._driver().cuLibraryGetModule(ctypes.byref(module), ctypes.c_void_p(handle)))
    return module.value


class _Code(cuda.CUSource):
    """The functions that a kernel or a device function uses, under names of its own: both may use the same ones."""
    count = 0

    def __init__(self):
        super().__init__(None, name="gdr.cu")
        _Code.count += 1
        self.suffix, self.used = f"_{_Code.count}", {}

    @property
    def data(self):
        return gdr_device.text((f.c(suffix=self.suffix) for f in self.used.values()), "#define GDR_MODULE_PART\n")


# One for the kernel: the constants, which are set before its first launch.
_constants = cuda.CUSource(gdr_device.text([]), name="gdr_constants.cu",
                           setup_callback=lambda code: gdr_device.module_init(_module(code)),
                           teardown_callback=lambda code: gdr_device.module_finalize(_module(code)))


def _use(library, f):
    """the symbol by which a library calls f"""
    code = next((c for c in library._linking_files if getattr(c, "library", None) is library), None)
    if not code:
        code = _Code()
        code.library = library
        library.add_linking_file(code)
        library.add_linking_file(_constants)
    code.used[f.name] = f
    return f.symbol + code.suffix


_paths = ":".join(d[2:] for d in gdr_kernel._include())
config.CUDA_NVRTC_EXTRA_SEARCH_PATHS = ":".join(filter(None, (config.CUDA_NVRTC_EXTRA_SEARCH_PATHS, _paths)))


def _taken(function, name, want, pointer, given):
    """the type as which an argument is taken"""
    if not pointer:
        return getattr(types, want)
    if isinstance(given, types.Array):
        if given.layout == "A":
            raise errors.TypingError(f"{function}: {name} is an array with steps")
        if want and str(given.dtype).lstrip("u") != want.lstrip("u"):
            raise errors.TypingError(f"{function}: {name} is an array of {want}, not of {given.dtype}")
        return given
    if isinstance(given, types.CPointer):
        return given
    if isinstance(given, types.Integer):
        return types.uint64
    raise errors.TypingError(f"{function}: {name} is an array or an address, not {given}")


def _pointer(context, builder, t, value):
    byte = ir.IntType(8).as_pointer()
    if isinstance(t, types.Array):
        return builder.bitcast(context.make_array(t)(context, builder, value).data, byte)
    return builder.inttoptr(value, byte) if isinstance(t, types.Integer) else builder.bitcast(value, byte)


def _array_at(context, builder, t, value, address):
    """an array at another address, without elements where that is 0"""
    array = context.make_array(t)(context, builder, value)
    known = builder.icmp_unsigned("!=", address, ir.Constant(address.type, 0))
    zero = ir.Constant(ir.IntType(64), 0)
    shape = [builder.select(known, n, zero) for n in cgutils.unpack_tuple(builder, array.shape, t.ndim)]
    array.shape = cgutils.pack_array(builder, shape)
    array.nitems = builder.select(known, array.nitems, zero)
    array.data = builder.inttoptr(address, array.data.type)
    return array._getvalue()


def _make(f):
    names = [n for n, _, _ in f.params]

    def typed(_, *args, **words):
        given = dict(zip(names, args), **words)
        if len(args) > len(names) or sorted(given) != sorted(names):
            raise errors.TypingError(f"{f.name} takes {', '.join(names) or 'nothing'}")
        taken = [_taken(f.name, n, t, pointer, given[n]) for n, t, pointer in f.params]
        seen = next((t for t in taken if isinstance(t, types.Array)), None) if f.result == "address" else None
        result = seen or (types.uint64 if f.result == "address" else getattr(types, f.result))

        def call(context, builder, sig, values):
            symbol = _use(context.active_code_library, f)
            at = [_pointer(context, builder, t, v) if pointer else v
                  for (_, _, pointer), t, v in zip(f.params, sig.args, values)]
            number = ir.IntType(64) if f.result == "address" else context.get_value_type(sig.return_type)
            one = cgutils.get_or_insert_function(builder.module, ir.FunctionType(number, [v.type for v in at]), symbol)
            out = builder.call(one, at)
            if seen:
                i = taken.index(seen)
                return _array_at(context, builder, seen, values[i], out)
            return out
        return signature(result, *taken), call

    typed.__name__ = typed.__qualname__ = f.name
    typed.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                                             for n in ["context", *names]])
    return intrinsic(typed)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    function = globals()[name] = _make(gdr_device.find(name, __name__))
    cuda_target.typing_context.refresh()  # which may be at work: a kernel's first use of the name
    return function
