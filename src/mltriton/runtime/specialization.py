"""From a kernel's arguments to what the compiler is told about them, and to what the launcher must check.

Level: runtime. As upstream: an array is a pointer to its dtype and a Python number a scalar of its type, both marked
where divisible by 16; the integer 1, None, strings, dtypes and functions are constants. Guarantees: arguments that give
equal entries can run the same code.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from mltriton.errors import ArgumentError, DeviceError
from mltriton.frontend.signature import SCALARS, Argument, Constant, Entry
from mltriton.language.constants import constexpr, unwrap
from mltriton.language.types import const, dtype
from mltriton.runtime.alignment import ALIGNMENT
from mltriton.runtime.native.params import INTEGER_RANGES, ParamSpec
from mltriton.runtime.native.params import ON_HOST as ON_HOST

# Names of dtypes in numpy (with ml_dtypes) and torch, as signatures call them.
SIGNATURE_NAMES: Mapping[str, str] = {
    "bool": "i1",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}
_ARRAY_NAMES = {short: name for name, short in SIGNATURE_NAMES.items()}


class IntegerRangeError(ArgumentError, OverflowError):
    """An integer argument that its type, or 64 bits, cannot hold."""


class Placeholder:
    """Stands for an array of a dtype when a kernel is compiled without being launched: aligned, on the host."""

    def __init__(self, name: str) -> None:
        self.dtype = name

    def data_ptr(self) -> int:
        """An aligned address."""
        return 0


class MockTensor(Placeholder):
    """Stands for a torch tensor of a dtype and shape in `warmup`."""

    def __init__(self, dtype: Any, shape: Sequence[int] | None = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else list(shape)

    @staticmethod
    def wrap_dtype(value: Any) -> Any:
        """A placeholder for a torch dtype, anything else as it is."""
        return MockTensor(value) if type(value).__name__ == "dtype" else value

    def stride(self) -> tuple[int, ...]:
        """Those of contiguous memory."""
        return tuple(math.prod(self.shape[dim + 1 :]) for dim in range(len(self.shape)))

    def ptr_range(self) -> int:
        """Bytes: none are known."""
        return 0


def specialize(name: str, value: Any, *, annotation: str | None, by_value: bool, by_alignment: bool) -> Entry:
    """What is told about the argument `value` of the parameter `name`.

    `annotation` is the scalar type the parameter's annotation demands; `by_value` lets the integer 1 be a constant and
    `by_alignment` marks divisibility by 16. Raises `ArgumentError` for values that no kernel takes.
    """
    value = plain(value)
    if isinstance(value, bool):
        return Argument("i1")
    if isinstance(value, int):
        return _integer(name, value, annotation, by_value=by_value, by_alignment=by_alignment)
    if isinstance(value, float):
        return Argument(annotation or "fp32")
    if is_array(value):
        aligned = by_alignment and address(value) % ALIGNMENT == 0
        return Argument(dtype_name(name, value), is_pointer=True, divisibility=ALIGNMENT if aligned else 1)
    if value is None or isinstance(value, str | dtype) or callable(value):
        return Constant(value)
    raise ArgumentError(
        f"the argument {name} is of a type that kernels do not take",
        expected="a numpy array, a torch tensor, a number, or a constant for a tl.constexpr parameter",
        found=type(value).__name__,
    )


def plain(value: Any) -> Any:
    """A constant's value; a scalar of numpy as Python's number."""
    value = unwrap(value)
    return one_nan(cast(Any, value).item() if isinstance(value, np.generic) else value)


def one_nan(value: Any) -> Any:
    """A value as a key, or a part of one: every NaN as one object, since NaNs are not equal."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _integer(name: str, value: int, annotation: str | None, *, by_value: bool, by_alignment: bool) -> Entry:
    if value == 1 and by_value and annotation is None:
        return Constant(1)
    kind = annotation or next((k for k in ("i32", "i64", "u64") if _fits(value, k)), None)
    if kind is None or not _fits(value, kind):
        raise IntegerRangeError(f"the argument {name} does not fit in {kind or '64 bits'}", found=str(value))
    aligned = by_alignment and value % ALIGNMENT == 0
    return Argument(kind, divisibility=ALIGNMENT if aligned else 1)


def _fits(value: int, kind: str) -> bool:
    low, high = INTEGER_RANGES.get(kind, (0, 1))
    return low <= value <= high


def is_array(value: Any) -> bool:
    """Whether an argument is an array: numpy's, torch's, or any object with a dtype and `data_ptr()`."""
    return isinstance(value, np.ndarray) or (hasattr(value, "data_ptr") and hasattr(value, "dtype"))


def address(value: Any) -> int:
    """The address of an array's first element, which may be 0 (`arrays.has_memory` says more)."""
    if isinstance(value, np.ndarray):
        return value.__array_interface__["data"][0]
    try:
        return value.data_ptr()
    except RuntimeError as error:
        raise ArgumentError("a tensor has no memory", found=type(value).__name__, hint=str(error)) from None


def dtype_name(name: str, value: Any) -> str:
    """The signature's name of an array's dtype; `ArgumentError` for a dtype that kernels do not have."""
    text = getattr(value.dtype, "short", None) or str(value.dtype).removeprefix("torch.")
    found = SIGNATURE_NAMES.get(text) or SCALARS.get(text)
    if found is None:
        raise ArgumentError(
            f"the argument {name} has a dtype that kernels do not have",
            expected=f"one of {', '.join(SIGNATURE_NAMES)}",
            found=text,
        )
    return found


def array_like_dtype(value: Any) -> str | None:
    """The signature's name of a dtype that stands for an array (ours, numpy's, torch's); None for anything else."""
    value = unwrap(value)
    if isinstance(value, dtype):
        return value.short if value.short in SCALARS else None
    if isinstance(value, type):
        return SIGNATURE_NAMES.get(value.__name__) if issubclass(value, np.generic) else None
    is_dtype = isinstance(value, np.dtype) or type(value).__name__ == "dtype"
    return SIGNATURE_NAMES.get(f"{value}".removeprefix("torch.")) if is_dtype else None


def device_kind(value: Any) -> str:
    """The kind of device that an array lies on."""
    device = getattr(value, "device", None)
    return str(getattr(device, "type", "cpu")) if not isinstance(device, str) else device


def device_of(value: Any) -> str:
    """The device that an array lies on with its number; main memory for what names none."""
    device = getattr(value, "device", None)
    index = None if isinstance(device, str) else getattr(device, "index", None)
    return device_kind(value) if index is None else f"{device_kind(value)}:{index}"


def takes_pinned(target: str, array: Any) -> bool:
    """Whether a target reads and writes an array of main memory where it is: NVIDIA's GPUs what torch has pinned."""
    return target.startswith("cuda") and device_of(array) == ON_HOST and bool(getattr(array, "is_pinned", bool)())


def check_devices(arguments: Mapping[str, Any], takes: Any, target: str) -> None:
    """Raise `DeviceError` unless every array lies where `takes(device)` allows, and all on one device."""
    arrays = {name: value for name, value in arguments.items() if is_array(value)}
    for name, value in arrays.items():
        if not takes(device := device_kind(value)):
            hint = f"Move it with {name}.to('cpu')." if target.startswith("cpu") else None
            if target.startswith("cpu") and device == "xpu":
                hint = f"Say which GPU it is with target=, such as \"xe:pvc\", or move it with {name}.to('cpu')."
            raise DeviceError(
                f"the argument {name} lies on the device {device}, and the kernel runs on {target}", hint=hint
            )
    devices = {name: device_of(value) for name, value in arrays.items() if not isinstance(value, Placeholder)}
    if len({device for name, device in devices.items() if not takes_pinned(target, arrays[name])}) > 1:
        raise DeviceError(
            "the arrays of a launch lie on several devices",
            expected="all on one device",
            found=", ".join(f"{name} on {device}" for name, device in devices.items()),
            hint="Move them with .to(device).",
        )


def guard(
    entry: Entry,
    *,
    writes: bool,
    is_annotated: bool,
    by_value: bool,
    by_alignment: bool,
    array: Any = None,
    device: str = ON_HOST,
) -> ParamSpec:
    """What the launcher checks of an argument before it runs the code that was compiled for `entry`.

    `array` has the dtype that arguments have where it is not the entry's; arrays lie at `device`.
    """
    if isinstance(entry, Constant):
        return ParamSpec.constant(entry.value)
    aligned = entry.divisibility == ALIGNMENT if by_alignment else None
    if entry.is_pointer:
        numpy_dtype, torch_dtype = array_dtypes(entry.scalar if array is None else dtype_name("", array))
        return ParamSpec.tensor(numpy_dtype, torch_dtype, writes=writes, divisible_by_16=aligned, device=device)
    if entry.scalar == "i1":
        return ParamSpec.boolean()
    if entry.scalar in INTEGER_RANGES:
        not_one = by_value and not is_annotated
        return ParamSpec.integer(entry.scalar, annotated=is_annotated, not_one=not_one, divisible_by_16=aligned)
    return ParamSpec.floating("f64" if entry.scalar == "fp64" else "f32")


def array_dtypes(scalar: str) -> tuple[np.dtype[Any] | None, Any]:
    """The dtypes of numpy and torch arrays that a pointer to `scalar` takes.

    None where there is none, or torch is not loaded.
    """
    name = _ARRAY_NAMES[scalar]
    torch = sys.modules.get("torch")
    return _numpy_dtype(name), getattr(torch, name, None) if torch is not None else None


def _numpy_dtype(name: str) -> np.dtype[Any] | None:
    """A dtype by name; those that numpy itself lacks are ml_dtypes', once the user has loaded it."""
    try:
        return np.dtype(name)
    except TypeError:
        extension = getattr(sys.modules.get("ml_dtypes"), name, None)
        return np.dtype(extension) if extension is not None else None


def annotation_of(annotation: Any) -> str | None:
    """The scalar type that a parameter's annotation demands (`n: tl.int64`, `n: "i64"`); None for other annotations."""
    if isinstance(annotation, dtype):
        return annotation.short if annotation.short in SCALARS else None
    # An annotation that is text, and postponed besides, has quotes of its own.
    text = annotation.strip("'\"").removeprefix("tl.") if isinstance(annotation, str) else ""
    return SIGNATURE_NAMES.get(text) or SCALARS.get(text)


def is_const_annotation(annotation: Any) -> bool:
    """Whether a parameter's annotation, evaluated or as text, is `tl.const`."""
    return annotation is const or (isinstance(annotation, str) and annotation.strip("'\"").split(".")[-1] == "const")


def constant_of(name: str, value: Any) -> Constant:
    """The entry of a `tl.constexpr` parameter; `ArgumentError` for an array or anything else that can change."""
    constant = plain(value)
    try:
        hash(constant)
    except TypeError:
        is_constant = False
    else:
        is_constant = not is_array(constant)
    if not is_constant:
        raise ArgumentError(
            f"the parameter {name} is a tl.constexpr and needs a constant",
            found=type(unwrap(value) if not isinstance(value, constexpr) else value.value).__name__,
        )
    return Constant(constant)
