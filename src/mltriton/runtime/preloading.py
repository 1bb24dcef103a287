"""What a kernel was compiled for, as text, and compiling it again from that: `JITFunction.preload`.

Level: runtime. Compile hooks get the text (`specialization_data`); programs keep it and give it to a later process,
which then has the kernel before its first launch. Guarantees: the text is JSON and names functions by their modules;
nothing in it is run. A constant that JSON and names cannot say leaves the text out (None).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from mltriton.compiler import CompiledKernel, Job, compile_job
from mltriton.compiler.options import Options
from mltriton.errors import ArgumentError, calling_location
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.signature import Argument, Constant, Entry, parse_signature
from mltriton.language.types import by_name, dtype
from mltriton.targets.target import find_target

if TYPE_CHECKING:
    from mltriton.runtime.jit import JITFunction


def specialization_data(job: Job) -> str | None:
    """A job as text; None where a constant cannot be said."""
    try:
        entries = {name: _entry_as_data(entry) for name, entry in job.entries.items()}
    except TypeError:
        return None
    options = {item.name: getattr(job.options, item.name) for item in fields(Options)}
    return json.dumps({"name": job.name, "target": job.target.name, "entries": entries, "options": options})


def preload(kernel: JITFunction, data: str) -> CompiledKernel:
    """Compile, or load, what `specialization_data` says. Raises `ArgumentError` for the text of another kernel."""
    try:
        said: dict[str, Any] = json.loads(data)
        name, target, entries = said["name"], said["target"], said["entries"]
        options = dict(said["options"])
    except (ValueError, KeyError, TypeError) as error:
        raise _refused(kernel, f"what was given cannot be read ({error})") from None
    if name != kernel.__name__:
        raise _refused(kernel, f"Specialization data is for {name} but trying to preload for {kernel.__name__}")
    options["of_targets"] = tuple((key, value) for key, value in options["of_targets"])
    job = Job(kernel, _entries(kernel, entries), find_target(target), Options(**options))
    compiled = compile_job(job, kernel.dependencies)
    kernel.remember(job, compiled)
    return compiled


class PreloadError(ArgumentError, RuntimeError):
    """Specialization data of another kernel, or none at all."""


def _refused(kernel: JITFunction, message: str) -> PreloadError:
    hint = f"specialization_data that a compile hook got for {kernel.__name__}"
    return PreloadError(message, expected=hint, location=calling_location())


def _entries(kernel: JITFunction, entries: Mapping[str, Any]) -> dict[str, Entry]:
    try:
        return {name: _entry(name, data) for name, data in entries.items()}
    except (KeyError, AttributeError, ImportError, TypeError) as error:
        raise _refused(kernel, f"an entry cannot be read ({error!r})") from None


def _entry_as_data(entry: Entry) -> dict[str, Any]:
    return {"type": str(entry)} if isinstance(entry, Argument) else {"value": _as_data(entry.value)}


def _entry(name: str, data: Mapping[str, Any]) -> Entry:
    return parse_signature({name: data["type"]}, [name])[name] if "type" in data else Constant(_value(data["value"]))


def _as_data(value: Any) -> Any:
    """A constant as JSON has it. Raises `TypeError` for what cannot be said."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return {"tuple": [_as_data(item) for item in cast("tuple[Any, ...]", value)]}
    if isinstance(value, dtype) and by_name(value.name) is value:
        return {"dtype": value.name}
    if isinstance(value, LanguageFunction) and "<locals>" not in value.__qualname__:
        return {"function": [value.__module__, value.__qualname__]}
    raise TypeError(f"{value!r} cannot be written down")


def _value(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    said = cast("Mapping[str, Any]", data)
    if "tuple" in said:
        return tuple(map(_value, said["tuple"]))
    return by_name(said["dtype"]) if "dtype" in said else _function(*said["function"])


def _function(module: str, path: str) -> LanguageFunction:
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not isinstance(found, LanguageFunction):
        raise TypeError(f"{module}.{path} is no function of the language")
    return found
