# SPDX-License-Identifier: BSD-3-Clause
"""What gdr_numba and gdr_triton share: the device functions (gdr_names), and for each one C that other compilers can call,
gdrpy_NAME: by the C ABI, numbers of less than 32 bits as 32 bits."""
import ctypes
import functools
import re

import gdr
import gdr_kernel
import gdr_names

PREFIX = "gdrpy_"
CONSTANTS = b"gdri_constants_here"  # a module that has it has device code of gdr
_NUMBER = {"int": "int32", "long": "int64", "long long": "int64", "unsigned int": "uint32", "unsigned long": "uint64",
           "unsigned long long": "uint64", "size_t": "uint64", "ptrdiff_t": "int64", "char": "int8",
           "signed char": "int8", "short": "int16", "unsigned char": "uint8", "unsigned short": "uint16",
           "float": "float32", "double": "float64", "gdr_team_t": "int32", "gdr_ctx_t": "int32",
           **{f"{u}int{n}_t": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}}
_POINTED = {**_NUMBER, "void": None, "gdr_half_t": "float16", "gdr_bfloat16_t": "bfloat16",
            "gdr_complexf_t": "complex64", "gdr_complexd_t": "complex128"}
_WIDE = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
_C = {"int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
      "float32": "float", "float64": "double"}


class Function:
    """name, result: a type or "address"; params: [(name, type, pointer)], where the type is that of numpy, None for bytes"""

    def __init__(self, name, result, params):
        self.name, self.symbol = name, PREFIX + name
        self.result = "address" if result.endswith("*") else _WIDE.get(_NUMBER[result], _NUMBER[result])
        self.params, self._c = [], []
        for p in params.split(", ") if params else []:
            c, word = p.removeprefix("const ").rsplit(" ", 1)
            pointer = word.startswith("*")
            t = (_POINTED if pointer else _NUMBER)[c]
            self.params.append((word.lstrip("*"), t if pointer else _WIDE.get(t, t), pointer))
            self._c.append(f"{c} *" if pointer else _C[self.params[-1][1]] + " ")

    def c(self, call="return {};", more="", suffix=""):
        """its definition, where call says what is done with the call; more: further parameters; suffix: of the symbol"""
        names = [n for n, _, _ in self.params]
        params = ", ".join([c + n for c, n in zip(self._c, names)] + ([more] if more else []))
        result = "void *" if self.result == "address" else _C[self.result] + " "
        body = call.format(f"gdr_{self.name}({', '.join(names)})")
        return f"GDRPY_FUNCTION {result}{self.symbol}{suffix}({params or 'void'})\n{{\n\t{body}\n}}\n"


@functools.cache
def functions():
    """{name: Function}: all but those that take or return a number of 16 bits that is no integer, or a complex one"""
    out = {}
    for name, (result, params) in gdr_names.prototypes().items():
        try:
            out[name] = Function(name, result, params)
        except KeyError:
            pass
    return out


def find(name, module):
    """the function, or an AttributeError in words"""
    if name in functions():
        return functions()[name]
    if name in gdr_names.prototypes():
        raise AttributeError(f"{module}.{name}: its value is of a type that is moved by put and get alone", name=name)
    raise AttributeError(f"{module}: there is no device function gdr_{name}", name=name)


_HEAD = """#ifdef __CUDACC__
{}#define GDRPY_FUNCTION extern "C" __device__
#else
#define GDRPY_FUNCTION
#endif
#include <gdr.h>
"""


def text(definitions, head=""):
    """a unit of CUDA C++, or of C (but for what programs of Triton call); head: lines in front"""
    body = "\n".join(definitions)
    more = "".join(f"#include <cuda_{h}.h>\n" for h, word in (("fp16", "_half_"), ("bf16", "_bfloat16_")) if word in body)
    return head + _HEAD.format(more) + body


# ---- for Triton, whose programs call as one ----

# What any thread can ask for itself.
_EACH = re.compile("(team_)?(my_pe|n_pes|ptr|translate_pe)$")
_ONCE = """
extern "C" { __shared__ unsigned long long gdrpy_result; }
template <typename F> static __device__ auto gdrpy_once(unsigned threads, F f) -> decltype(f())
{
	__syncthreads();
	if (threadIdx.x < threads) {
		auto r = f();

		if (!threadIdx.x)
			*(decltype(r) *)&gdrpy_result = r;
	}
	__syncthreads();
	auto out = *(decltype(f()) *)&gdrpy_result;

	__syncthreads();
	return out;
}
"""


_EXTERN = re.compile(r"\.extern \.func\s*(?:\([^)]*\))?\s*" + PREFIX + r"(\w+)\s*\([^)]*\)\s*;")


def _of_program(name):
    f = functions()[name]
    more = "" if f.params else "int"  # Triton's calls have an argument
    if _EACH.match(name):
        return f.c(more=more)
    if name.endswith("_block"):
        return f.c("__syncthreads();\n\tauto out = {};\n\t__syncthreads();\n\treturn out;", more)
    return f.c("return gdrpy_once(%d, [&] {{ return {}; }});" % (32 if name.endswith("_warp") else 1), more)


def source(names):
    """CUDA C++ of the functions, as a program calls them"""
    return text([_ONCE, *map(_of_program, sorted(names))])


def complete(ptx, capability):
    """PTX with the functions that it calls"""
    names = set(_EXTERN.findall(ptx))
    if not names:
        return ptx
    ours = gdr_kernel.compiled(source(names), "PTX", f"compute_{capability}", "--relocatable-device-code=true")
    head = ".address_size 64"
    ours = ours.split(head, 1)[1].replace(".visible .func", ".func")  # nobody else calls them
    # Triton's own shared memory stands behind that of gdr, and counts on more than it says
    ptx = re.sub(r"(\.extern \.shared \.align) \d+", r"\1 1024", _EXTERN.sub("", ptx))
    return ptx.replace(head, head + ours, 1)


# ---- modules ----

_modules = set()


def module_init(module):
    """of a CUmodule, if it has device code of gdr"""
    address, size, m = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_void_p(module)
    if not gdr_kernel._driver().cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), m, CONSTANTS):
        gdr._said("module_init", gdr._lib.gdr_module_init(m))
        _modules.add(module)


def module_finalize(module):
    """before it is unloaded; gdr_finalize has done it, where that was before"""
    if module in _modules and gdr._lib.gdr_host_my_pe() >= 0:
        gdr._lib.gdr_module_finalize(ctypes.c_void_p(module))
    _modules.discard(module)


def version(package):
    """(major, minor) of an installed package, or None"""
    from importlib import metadata
    try:
        return tuple(int(n) for n in metadata.version(package).split(".")[:2])
    except metadata.PackageNotFoundError:
        return None
