# SPDX-License-Identifier: BSD-3-Clause
"""Kernels from Python, for GPUs (compiled by NVRTC) and for the host device (by cc, or CC), where gdr.init said which.

    @gdr_kernel.kernel
    def ring(to: "int32*", status: "int32*"):
        me = gdr.my_pe()
        status[0] = gdr.int32_p(to, 1000 + me, (me + 1) % gdr.n_pes())

    ring[1, 32](array, status)          # blocks, threads; then ring[1, 32, stream]
    gdr_kernel.sync()

The function is read, not run: what it holds is written as CUDA C, or C. Parameters say their type, of C, with * where
they are arrays. Numbers, array elements, parts a[i:] (an address), if, while, for in range, and/or/not, min, max, abs,
int and float; // and % are those of Python. A variable keeps the type of its first value, integers have 64 bits.
gdr.NAME(...) is the device function gdr_NAME, whatever it is; a name that is a number outside is that number. All else
is refused with its line.

source(text, name, fields) is a kernel in C: GDR_KERNEL(name, struct ..., ...) and the fields of its struct."""
import ast
import ctypes
import importlib.util
import inspect
import os
import subprocess
import tempfile
import textwrap

import gdr

_C = {"int8": ctypes.c_int8, "uint8": ctypes.c_uint8, "int16": ctypes.c_int16, "uint16": ctypes.c_uint16,
      "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64,
      "float32": ctypes.c_float, "float64": ctypes.c_double}
_C_NAME = {"float32": "float", "float64": "double"}


def _c_type(t):
    return (_C_NAME.get(t.rstrip("*"), t.rstrip("*") + "_t")) + (" *" if t.endswith("*") else " ")


# ---- from Python to C ----

# Functions, so that what stands in an expression once is done once.
_HEAD = """#include <gdr.h>
#ifndef __cplusplus
#include <math.h>
#endif
#define GDRPY_OPERATION(name, integer, real) \\
	GDR_DEVICE long long gdrpy_i_##name(long long a, long long b) { (void)b; return integer; } \\
	GDR_DEVICE double gdrpy_f_##name(double a, double b) { (void)b; return real; }
GDRPY_OPERATION(div, a / b - (a % b && (a % b < 0) != (b < 0)), floor(a / b))
GDRPY_OPERATION(mod, a % b + (a % b && (a % b < 0) != (b < 0) ? b : 0), a - b * floor(a / b))
GDRPY_OPERATION(min, b < a ? b : a, b < a ? b : a)
GDRPY_OPERATION(max, b > a ? b : a, b > a ? b : a)
GDRPY_OPERATION(abs, a < 0 ? -a : a, a < 0 ? -a : a)
#ifdef __cplusplus
#define GDRPY_TYPE(x) decltype((x) + 0ll) /* a pointer stays one */
#define GDRPY_PICK(name) \\
	GDR_DEVICE long long gdrpy_##name(long long a, long long b) { return gdrpy_i_##name(a, b); } \\
	GDR_DEVICE long long gdrpy_##name(unsigned long long a, unsigned long long b) \\
	{ return gdrpy_i_##name((long long)a, (long long)b); } \\
	GDR_DEVICE double gdrpy_##name(double a, double b) { return gdrpy_f_##name(a, b); }
GDRPY_PICK(div) GDRPY_PICK(mod) GDRPY_PICK(min) GDRPY_PICK(max) GDRPY_PICK(abs)
#define GDRPY(name, a, b) gdrpy_##name((GDRPY_TYPE((a) + (b)))(a), (GDRPY_TYPE((a) + (b)))(b))
#else
#define GDRPY_TYPE(x) __typeof__((x) + 0ll)
#define GDRPY(name, a, b) \\
	_Generic((a) + (b), float: gdrpy_f_##name, double: gdrpy_f_##name, default: gdrpy_i_##name)(a, b)
#endif
"""
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
           ast.LShift: "<<", ast.RShift: ">>"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "!"}
_CALLS = {"int": "(int64_t)({})", "float": "(double)({})", "min": "GDRPY(min, {}, {})", "max": "GDRPY(max, {}, {})",
          "abs": "GDRPY(abs, {}, 0)"}
_UNSIGNED = "thread_id", "block_id", "block_size", "grid_size", "lane_id"  # which in C a negative number would become


def _calls(node):
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


class _Writer(ast.NodeVisitor):
    """One function; each visit of an expression returns its text."""

    def __init__(self, names, outside):
        self.known, self.outside = list(names), outside
        self.first, self.body, self.depth = [], [], 1

    def generic_visit(self, node):
        raise SyntaxError(f"line {getattr(node, 'lineno', '?')} of the kernel: {type(node).__name__} is not known here")

    def line(self, text):
        self.body.append("\t" * self.depth + text)

    def name(self, name, c_type):
        """a variable, from its first value on"""
        if name not in self.known:
            self.known.append(name)
            self.first.append(f"\t{c_type} {name};")

    def once(self, text):
        """a variable with the value, where it is to be reckoned before the line that is written"""
        name = f"gdrpy_once_{len(self.first)}"
        self.name(name, f"GDRPY_TYPE({text})")
        self.line(f"{name} = {text};")
        return name

    # expressions

    def visit_Name(self, node):
        if node.id in self.known:
            return node.id
        return self.number(self.outside.get(node.id), node)

    def number(self, value, node):
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, int):
            return f"{value}{'ull' if value >= 2**63 else 'll'}"
        if isinstance(value, float):
            return repr(value)
        raise SyntaxError(f"line {node.lineno} of the kernel: {ast.unparse(node)} is no number and no variable yet")

    def visit_Constant(self, node):
        return self.number(node.value, node)

    def visit_Attribute(self, node):
        base = node.value.id if isinstance(node.value, ast.Name) else None
        return self.number(getattr(self.outside.get(base), node.attr, None), node)

    def visit_BinOp(self, node):
        a, b = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.FloorDiv):
            return f"GDRPY(div, {a}, {b})"
        if isinstance(node.op, ast.Mod):
            return f"GDRPY(mod, {a}, {b})"
        if isinstance(node.op, ast.Div):
            return f"((double)({a}) / ({b}))"
        if type(node.op) not in _BINARY:
            self.generic_visit(node)
        return f"({a} {_BINARY[type(node.op)]} {b})"

    def visit_UnaryOp(self, node):
        return f"({_UNARY[type(node.op)]}{self.visit(node.operand)})"

    def visit_BoolOp(self, node):
        word = " && " if isinstance(node.op, ast.And) else " || "
        return "(" + word.join(f"!!({self.visit(v)})" for v in node.values) + ")"

    def visit_Compare(self, node):
        nodes = [node.left, *node.comparators]
        if any(type(op) not in _COMPARE for op in node.ops):
            self.generic_visit(node)
        left = [self.visit(v) for v in nodes]
        right = left[:]
        for i in range(1, len(nodes) - 1):  # stands on both sides
            if _calls(nodes[i]):
                name = f"gdrpy_side_{len(self.first)}"
                self.name(name, f"GDRPY_TYPE({left[i]})")
                left[i], right[i] = name, f"({name} = {left[i]})"
        return "(" + " && ".join(f"{a} {_COMPARE[type(op)]} {b}" for a, op, b in zip(left, node.ops, right[1:])) + ")"

    def visit_IfExp(self, node):
        return f"({self.visit(node.test)} ? {self.visit(node.body)} : {self.visit(node.orelse)})"

    def visit_Subscript(self, node):
        if not isinstance(node.slice, ast.Slice):
            return f"{self.visit(node.value)}[{self.visit(node.slice)}]"
        if node.slice.upper or node.slice.step or not node.slice.lower:
            self.generic_visit(node.slice)
        return f"({self.visit(node.value)} + {self.visit(node.slice.lower)})"

    def visit_Call(self, node):
        f, args = node.func, [self.visit(a) for a in node.args]
        if node.keywords:
            self.generic_visit(node)
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and self.outside.get(f.value.id) is gdr:
            return ("(int64_t)" if f.attr in _UNSIGNED else "") + f"gdr_{f.attr}({', '.join(args)})"
        if isinstance(f, ast.Name) and f.id in _CALLS and len(args) == _CALLS[f.id].count("{}"):
            return _CALLS[f.id].format(*args)
        return self.generic_visit(node)

    # statements

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        self.line(f"(void){self.visit(node.value)};")

    def visit_Assign(self, node):
        value = self.visit(node.value)
        if len(node.targets) > 1 and _calls(node.value):
            value = self.once(value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.name(target.id, f"GDRPY_TYPE({value})")
            elif not isinstance(target, ast.Subscript):
                self.generic_visit(target)
            self.line(f"{self.visit(target)} = {value};")

    def visit_AugAssign(self, node):
        target = node.target
        if _calls(target):  # an element, by its address
            name = self.once(f"&{self.visit(target)}")
            target = ast.Subscript(ast.Name(name), ast.Constant(0))
        both = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        self.line(f"{self.visit(target)} = {self.visit(both)};")

    def visit_If(self, node):
        self.line(f"if ({self.visit(node.test)}) {{")
        self.block(node.body)
        if node.orelse:
            self.line("} else {")
            self.block(node.orelse)
        self.line("}")

    def visit_While(self, node):
        if node.orelse:
            self.generic_visit(node.orelse[0])
        self.line(f"while ({self.visit(node.test)}) {{")
        self.block(node.body)
        self.line("}")

    def visit_For(self, node):
        it = node.iter
        if node.orelse or not isinstance(node.target, ast.Name) or not isinstance(it, ast.Call) or \
                not isinstance(it.func, ast.Name) or it.func.id != "range" or not 1 <= len(it.args) <= 3:
            self.generic_visit(node)
        args = [self.visit(a) for a in it.args]
        first, last, step = (["0"] + args + ["1"])[:3] if len(args) == 1 else (args + ["1"])[:3]
        i = node.target.id
        at, end, by = names = [f"gdrpy_{w}_{len(self.first)}" for w in ("at", "end", "by")]
        for word in (i, *names):
            self.name(word, "int64_t")
        # the range is reckoned once, and what the body does to the variable does not move it
        self.line(f"{end} = {last}; {by} = {step};")
        self.line(f"for ({at} = {first}; {by} > 0 ? {at} < {end} : {at} > {end}; {at} += {by}) {{")
        self.line(f"\t{i} = {at};")
        self.block(node.body)
        self.line("}")

    def visit_Break(self, _):
        self.line("break;")

    def visit_Continue(self, _):
        self.line("continue;")

    def visit_Pass(self, _):
        pass

    def visit_Return(self, node):
        if node.value:
            self.generic_visit(node)
        self.line("return;")

    def block(self, statements):
        self.depth += 1
        for s in statements:
            self.visit(s)
        self.depth -= 1


def translate(function):
    """(C, name, fields) of a function"""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    fields = []
    for a in tree.args.args:
        t = a.annotation.value if isinstance(a.annotation, ast.Constant) else None
        if not isinstance(t, str) or t.removesuffix("*") not in _C:
            raise SyntaxError(f"{a.arg}: a type is missing: {', '.join(_C)}, with * for an array")
        fields.append((a.arg, t))
    w = _Writer([n for n, _ in fields], {**function.__globals__, **inspect.getclosurevars(function).nonlocals})
    w.depth = 0
    w.block(tree.body)
    struct = "".join(f"\t{_c_type(t)}{n};\n" for n, t in fields) or "\tint nothing;\n"
    take = "".join(f"\t{_c_type(t)}{n} = gdrpy_args.{n};\n" for n, t in fields)
    body = take + "".join(f"\t(void){n};\n" for n, _ in fields) + "\n".join(w.first + w.body)
    text = f"{_HEAD}struct gdrpy_args {{\n{struct}}};\n" + \
        f"GDR_KERNEL({tree.name}, struct gdrpy_args, gdrpy_args)\n{{\n{body}\n}}\n"
    return text, tree.name, fields


# ---- compiling and launching ----

def _include():
    """GDR_INCLUDE, or where the headers are from here: in the wheel; in the sources and the build's include/, which lies
    beside the folder of gdr_names.py; and where all are installed"""
    here = os.path.dirname(os.path.abspath(__file__))
    made = os.path.dirname(importlib.util.find_spec("gdr_names").origin)
    dirs = os.environ.get("GDR_INCLUDE", "").split(":") if os.environ.get("GDR_INCLUDE") else \
        [os.path.join(os.path.dirname(gdr.__file__), "include"), os.path.join(here, "..", "include"), os.path.join(here, "..", "device"),
         os.path.join(made, "..", "include"), os.path.join(here, "..", "..", "include")]
    return [f"-I{d}" for d in dirs if os.path.isdir(d)]


def _library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise OSError(f"none of {', '.join(names)} is found")


def _cuda(call, code):
    if code:
        raise RuntimeError(f"{call}: error {code} of the CUDA driver or of NVRTC")


def compiled(text, to, arch, *more):
    """what NVRTC makes of CUDA C++: the bytes of a CUBIN, the text of PTX"""
    rtc = _library(os.environ.get("LIBNVRTC", "libnvrtc.so"), "libnvrtc.so.13", "libnvrtc.so.12",
                   "/usr/local/cuda/lib64/libnvrtc.so")
    options = [f"--gpu-architecture={arch}", "--std=c++17", *more, *_include()]
    c = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    _cuda("nvrtcCreateProgram",
          rtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None))
    try:
        if rtc.nvrtcCompileProgram(program, len(options), c):
            rtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            rtc.nvrtcGetProgramLog(program, log)
            raise SyntaxError(log.value.decode())
        _cuda(f"nvrtcGet{to}Size", getattr(rtc, f"nvrtcGet{to}Size")(program, ctypes.byref(size)))
        image = ctypes.create_string_buffer(size.value)
        _cuda(f"nvrtcGet{to}", getattr(rtc, f"nvrtcGet{to}")(program, image))
        return image.value.decode() if to == "PTX" else image
    finally:
        rtc.nvrtcDestroyProgram(ctypes.byref(program))


def _nvrtc(text):
    """the image for the GPU of the current context"""
    device, major, minor = (ctypes.c_int() for _ in range(3))
    _cuda("cuCtxGetDevice", _driver().cuCtxGetDevice(ctypes.byref(device)))
    _driver().cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    _driver().cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return compiled(text, "CUBIN", f"sm_{major.value}{minor.value}")


def _driver():
    return _library("libcuda.so.1")


class _OnGpu:
    def __init__(self, text, name):
        self.module, self.f = ctypes.c_void_p(), ctypes.c_void_p()
        _cuda("cuModuleLoadData", _driver().cuModuleLoadData(ctypes.byref(self.module), _nvrtc(text)))
        gdr._said("module_init", gdr._lib.gdr_module_init(self.module))
        _cuda(name, _driver().cuModuleGetFunction(ctypes.byref(self.f), self.module, name.encode()))

    def launch(self, blocks, threads, shared, stream, args):
        params = (ctypes.c_void_p * 1)(ctypes.addressof(args))
        _cuda("cuLaunchKernel", _driver().cuLaunchKernel(self.f, blocks, 1, 1, threads, 1, 1, shared,
                                                         ctypes.c_void_p(stream), params, None))


class _OnHost:
    def __init__(self, text, name):
        tail = f"""
GDR_API int gdrpy_launch(unsigned b, unsigned t, size_t shared, gdr_stream_t s, const void *a);
int gdrpy_launch(unsigned b, unsigned t, size_t shared, gdr_stream_t s, const void *a)
{{
	return gdr_launch({name}, b, t, shared, s, a);
}}
"""
        lib = gdr._lib._name
        with tempfile.TemporaryDirectory() as d:
            out = os.path.join(d, "kernel.so")
            r = subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", *_include(),
                                "-x", "c", "-", "-x", "none", "-o", out, lib if "/" in lib else "-lgdr", "-lm"],
                               input=text + tail, capture_output=True, text=True)
            if r.returncode:
                raise SyntaxError(r.stderr)
            self.f = ctypes.CDLL(out).gdrpy_launch
        u, p, z = ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t
        self.f.argtypes = [u, u, z, p, p]

    def launch(self, blocks, threads, shared, stream, args):
        gdr._said("launch", self.f(blocks, threads, shared, stream, ctypes.addressof(args)))


class Kernel:
    """kernel[blocks, threads(, stream(, bytes of shared memory))](arguments); compiled at its first launch"""

    def __init__(self, text, name, fields):
        self.text, self.name, self.fields, self._made = text, name, fields, None
        self._struct = type(name, (ctypes.Structure,),
                            {"_fields_": [(n, ctypes.c_void_p if t.endswith("*") else _C[t]) for n, t in fields]
                             or [("nothing", ctypes.c_int)]})

    def _value(self, name, t, x):
        if not t.endswith("*"):
            return x
        if isinstance(x, gdr.Array):
            if x.dtype != t[:-1]:
                raise TypeError(f"{self.name}: {name} is an array of {t[:-1]}, not of {x.dtype}")
            return x.ptr
        if hasattr(x, "__cuda_array_interface__"):
            return x.__cuda_array_interface__["data"][0]
        return x

    def __getitem__(self, how):
        blocks, threads, stream, shared = (tuple(how) + (None, 0)[len(how) - 2:])[:4]

        def launch(*args):
            if len(args) != len(self.fields):
                raise TypeError(f"{self.name} takes {len(self.fields)} arguments, not {len(args)}")
            if not self._made:
                self._made = (_OnGpu if gdr.on_gpu() else _OnHost)(self.text, self.name)
            values = self._struct(*(self._value(n, t, x) for (n, t), x in zip(self.fields, args)))
            self._made.launch(blocks, threads, shared, stream, values)
        return launch


def kernel(function):
    return Kernel(*translate(function))


def source(text, name, fields):
    return Kernel(text, name, list(fields.items()))


def sync(stream=None):
    """waits for what was launched on the stream"""
    if gdr.on_gpu():
        _cuda("cuStreamSynchronize", _driver().cuStreamSynchronize(ctypes.c_void_p(stream)))
    else:
        gdr._said("sync", gdr._lib.gdr_stream_sync(ctypes.c_void_p(stream)))
