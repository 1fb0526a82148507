# SPDX-License-Identifier: BSD-3-Clause
"""Tensors over the symmetric heap, and which tensors are."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

import gdr

from .. import _dlpack
from .._array import TYPES
from .._library import lib

_NAMES = {getattr(torch, name): name for name in TYPES if hasattr(torch, name)}
_TORCH = {name: t for t, name in _NAMES.items()}
_arrays: dict[int, gdr.Array] = {}
_given_back: set[int] = set()
_workspace: gdr.Array | None = None
_workspace_tensor: Tensor | None = None


def init(workspace: int = 16 << 20, **how: Any) -> None:
    """Collective. gdr.init(**how); on a GPU behind torch.cuda.set_device(). workspace: bytes of the heap in which the
    functional collectives stage, the same on all PEs; larger tensors take several rounds."""
    if workspace < 4096:
        raise ValueError(f"a workspace of {workspace} bytes: at least 4096")
    gdr.init(**how)
    stage(workspace)


def stage(nbytes: int = 16 << 20) -> None:
    """Collective. The workspace alone, of a job that is there."""
    global _workspace, _workspace_tensor
    _workspace = gdr.zeros(nbytes // 512 * 512, "uint8")
    _workspace_tensor = tensor_of(_workspace)


def unstage() -> None:
    """Collective. Frees it."""
    global _workspace, _workspace_tensor
    array, _ = workspace()
    _workspace_tensor = _ = None
    array.free()
    _workspace = None


def staged() -> bool:
    return _workspace is not None


def finalize() -> None:
    """Collective. Symmetric tensors must not be used behind it."""
    global _workspace, _workspace_tensor
    workspace()
    _workspace = _workspace_tensor = None
    _arrays.clear()
    given_back().clear()
    gdr.finalize()


def given_back() -> set[int]:
    """Segments of pools (_pool.py) that PyTorch gave back here, and release() has not freed."""
    while ptr := lib.gdri_torch_freed():
        _given_back.add(ptr)
    return _given_back


def workspace() -> tuple[gdr.Array, Tensor]:
    if _workspace is None or _workspace_tensor is None:
        raise RuntimeError("gdr.torch.init() has not been called")
    return _workspace, _workspace_tensor


def name_of(dtype: torch.dtype) -> str:
    if dtype not in _NAMES:
        raise ValueError(f"{dtype} is none of gdr's types ({', '.join(_TORCH)}): pass tensor.view() of one of these")
    return _NAMES[dtype]


class _Export:
    """An array, or what lies at an address, as DLPack of the current device."""

    def __init__(self, array: gdr.Array, address: int | None):
        self.array, self.address = array, array.ptr if address is None else address

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_dlpack.CUDA, torch.cuda.current_device()) if gdr.on_gpu() else (_dlpack.CPU, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return _dlpack.capsule(self.address or 0, self.array.shape, self.array.dtype, self.__dlpack_device__(),
                               self.array._view())


def tensor_of(array: gdr.Array, address: int | None = None) -> Tensor:
    """A view of an array; address: of the same elements of another PE, as this one sees them."""
    return from_dlpack(_Export(array, address))


def _made(make: Any, shape: tuple[Any, ...], dtype: torch.dtype | None) -> Tensor:
    workspace()
    lengths = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    a = make(lengths, name_of(dtype or torch.get_default_dtype()))
    if a.ptr:
        _arrays[a.ptr] = a
    return tensor_of(a)


def empty(*shape: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Collective, with the same arguments on all PEs: a symmetric tensor, of the GPU or, on the host device, of the CPU.
    It lives until free() or finalize()."""
    return _made(gdr.empty, shape, dtype)


def zeros(*shape: Any, dtype: torch.dtype | None = None) -> Tensor:
    """As empty(), of zeros."""
    return _made(gdr.zeros, shape, dtype)


def free(tensor: Tensor) -> None:
    """Collective. A tensor that empty() or zeros() returned is left without elements. A BufferError where other tensors
    share its memory: it was not freed, here."""
    a = _arrays.get(tensor.data_ptr())
    if a is None:
        raise ValueError(f"free: this tensor {tuple(tensor.shape)} is not what gdr.torch.empty() or zeros() returned")
    shape = tensor.shape
    tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    try:
        address = a.ptr
        a.free()
        del _arrays[address]  # type: ignore[arg-type]
    except BufferError:
        tensor.data = tensor_of(a).view(shape)
        raise


def register(tensor: Tensor) -> Tensor:
    """Collective. gdr_symmetric_register: the same memory as a tensor that is symmetric; operations take that one. On the
    host device whole pages; on a GPU memory of cuMemCreate, or with GDR_ANY_ADDRESS any part at multiples of 16 bytes.
    The memory must live until unregister()."""
    if not tensor.is_contiguous():
        raise ValueError("register: a tensor with gaps")
    a = gdr.register(tensor.data_ptr(), tensor.numel() * tensor.element_size(), name_of(tensor.dtype))
    a.keep = tensor
    if a.ptr:
        _arrays[a.ptr] = a
    return tensor_of(a).view(tensor.shape)


def unregister(tensor: Tensor) -> None:
    """Collective. tensor: what register() returned; it is left without elements."""
    a = _arrays.pop(tensor.data_ptr(), None)
    if a is None:
        raise ValueError("unregister: this tensor is not what gdr.torch.register() returned")
    tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    gdr.unregister(a)


def is_symmetric(tensor: Tensor) -> bool:
    """Whether all of it lies in the symmetric heap."""
    first, nbytes, me = tensor.data_ptr(), tensor.numel() * tensor.element_size(), gdr.my_pe()
    at = lib.gdr_host_ptr
    return nbytes == 0 or bool(at(first, me) and at(first + nbytes - 1, me))


def array_of(call: str, tensor: Tensor) -> gdr.Array:
    """The tensor as an array; refused where others could not reach it."""
    workspace()
    if not tensor.is_contiguous():
        raise ValueError(f"{call}: a tensor with gaps: shape {tuple(tensor.shape)}, strides {tensor.stride()}")
    if not is_symmetric(tensor):
        raise ValueError(f"{call}: a tensor {tuple(tensor.shape)} of {tensor.dtype} that is not symmetric: make it with "
                         "gdr.torch.empty() or zeros(), or take what gdr.torch.register(tensor) returns")
    return gdr.Array(tensor.data_ptr(), tuple(tensor.shape), name_of(tensor.dtype), False)


def stream_of(tensor: Tensor) -> int | None:
    """The current CUDA stream of a tensor of a GPU; None, at once, of a CPU."""
    return int(torch.cuda.current_stream(tensor.device).cuda_stream) if tensor.is_cuda else None
