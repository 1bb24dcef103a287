"""Pass pipelines as text: `"canonicalize,assign-layouts{tiling=square},unroll{factor=4 full=true}"`.

Level: all. Options are the fields of the pass's dataclass, `num-warps` or `num_warps`; they are converted to the type
that the field is annotated with: int, bool, float, str, a tuple of integers (`sizes=4:8`), or one of these or None.
Raises `OptionError` for unknown passes and options and for values that do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from mltriton.errors import OptionError, did_you_mean
from mltriton.ir.passes import Pass
from mltriton.passes.registry import find_pass

_OPTION = r"\s*([\w-]+)(?:\s*=\s*(\"[^\"]*\"|[^\s,]+))?\s*,?"  # not compiled before there is one
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def parse_pipeline(
    text: str, find: Callable[[str], type[Pass]] = find_pass, wanted: Callable[[str], bool] = lambda name: True
) -> list[Pass]:
    """The passes of a pipeline, those by a wanted name; `find` gives a name's class (default: `passes/registry.py`)."""
    return [make_pass(find(name), _options(options)) for name, options in _items(text) if wanted(name)]


def _items(text: str) -> Iterator[tuple[str, str]]:
    """The names in a pipeline, each with the text of its options."""
    while text := text.strip():
        end = next((place for place, letter in enumerate(text) if not (letter.isalnum() or letter in "_.-")), len(text))
        options, rest, is_closed = "", text[end:].lstrip(), True
        if rest.startswith("{"):
            options, closing, rest = rest[1:].partition("}")
            rest, is_closed = rest.lstrip(), bool(closing) and "{" not in options
        if not end or not is_closed or rest[:1] not in ("", ","):
            raise OptionError(f"cannot read the pipeline at `{text}`", expected="pass,pass{option=value}")
        yield text[:end], options
        text = rest[1:]


def _options(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    while text.strip():
        option = re.match(_OPTION, text)
        if option is None:
            raise OptionError(f"cannot read the options at `{text}`", expected="option=value option=value")
        options[option[1].replace("-", "_")] = (option[2] or "true").strip('"')
        text = text[option.end() :]
    return options


def make_pass(cls: type[Pass], options: dict[str, str]) -> Pass:
    """A pass with options given as text."""
    known = [field.name for field in fields(cls)]
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known) or f"{cls.name} has: {', '.join(known) or 'no options'}"
            raise OptionError(f"{cls.name} has no option {name}", hint=hint)
    types = get_type_hints(cls) if options else {}
    values = {name: _convert(cls, name, text, types[name]) for name, text in options.items()}
    required = [field.name for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING]
    if missing := [name for name in required if name not in values]:
        raise OptionError(f"{cls.name} needs option {missing[0]}")
    return cls(**values)


def _convert(cls: type[Pass], name: str, text: str, type: Any) -> Any:
    try:
        return _value(text, type)
    except (ValueError, KeyError):
        raise OptionError(f"option {name} of {cls.name} does not take `{text}`", expected=str(type)) from None


def _value(text: str, type: Any) -> Any:
    if get_origin(type) in (Union, UnionType):
        if text == "none":
            return None
        (type,) = (case for case in get_args(type) if case is not NoneType)
    if type is bool:
        return _BOOLEANS[text]
    if get_origin(type) is tuple:
        return tuple(int(part) for part in text.split(":"))
    return type(text)


NoneType = type(None)


def pipeline_text(passes: Sequence[Pass]) -> str:
    """The text that reads back as these passes; options at their default are left out."""
    return ",".join(map(_pass_text, passes))


def _pass_text(step: Pass) -> str:
    changed = [
        f"{field.name}={_value_text(getattr(step, field.name))}"
        for field in fields(step)
        if getattr(step, field.name) != field.default
    ]
    return f"{step.name}{{{' '.join(changed)}}}" if changed else step.name


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) and re.search(r"[\s,]", value) else str(value)
