"""The parameters of a kernel, and how a call's arguments reach them.

Level: runtime. A call shape (so many positional arguments, these keywords) is worked out once: `CallShape.pick` then
puts the arguments of every such call into the order of the parameters without looking at names again. Guarantees: wrong
arguments are an `ArgumentError` with the signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NoReturn

from mltriton.compiler.options import OPTIONS, REFUSED
from mltriton.errors import ArgumentError, SignatureError, did_you_mean
from mltriton.frontend.function import LanguageFunction, is_constexpr_annotation
from mltriton.records import record
from mltriton.runtime.specialization import annotation_of, is_const_annotation
from mltriton.targets.options import known_options

# Keywords of a launch that are no parameters, besides those that targets declare: how the kernel is compiled.
LAUNCH_OPTIONS = (*OPTIONS, "target")
# Upstream's options for particular GPUs: taken, and without meaning on the targets there are: programs compute the same
# (products of fp32 are at least as exact as asked).
IGNORED_OPTIONS = frozenset(
    [
        "extern_libs",
        "device",
        "arch",
        "backend_name",
        "deprecated_fp8_dot_operand_dtypes",
        "default_dot_input_precision",
        "instrumentation_mode",
        "waves_per_eu",
        "kpack",
        "matrix_instr_nonkdim",
        "schedule_hint",
        "threads_per_warp",
    ]
)


# A parameter of such a name tells the kernel how it is compiled; a call that says nothing gets these. Any other
# parameter named like an option is the kernel's own.
_OPTION_DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}


Pick = Callable[[tuple[Any, ...]], tuple[Any, ...]]


@record(frozen=True)
class Parameter:
    """One parameter of a kernel: its name, whether it is a `tl.constexpr`, and how its arguments are specialised.

    `is_const`: annotated `tl.const`, so that the kernel must not write through it.
    """

    name: str
    index: int
    is_constexpr: bool
    default: Any
    annotation: str | None
    by_value: bool
    by_alignment: bool
    is_const: bool = False

    @property
    def has_default(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not inspect.Parameter.empty

    # The same by upstream's names.

    @property
    def num(self) -> int:
        """The position."""
        return self.index

    @property
    def do_not_specialize(self) -> bool:
        """Whether neither the value 1 nor divisibility is compiled in."""
        return not self.by_value

    @property
    def do_not_specialize_on_alignment(self) -> bool:
        """Whether divisibility is not compiled in."""
        return not self.by_alignment


def parameters_of(
    fn: LanguageFunction, do_not_specialize: Sequence[int | str], do_not_specialize_on_alignment: Sequence[int | str]
) -> tuple[Parameter, ...]:
    """The parameters of a kernel. The two lists name parameters, or give their positions."""
    return tuple(
        Parameter(
            name=name,
            index=index,
            is_constexpr=is_constexpr_annotation(found.annotation),
            default=_OPTION_DEFAULTS.get(name)
            if found.default is found.empty and name in _OPTION_DEFAULTS
            else found.default,
            annotation=annotation_of(found.annotation),
            by_value=not (index in do_not_specialize or name in do_not_specialize),
            by_alignment=not any(
                index in names or name in names for names in (do_not_specialize, do_not_specialize_on_alignment)
            ),
            is_const=is_const_annotation(found.annotation),
        )
        for index, (name, found) in enumerate(fn.signature.parameters.items())
    )


def check_constants(kernel: str, parameters: Sequence[Parameter]) -> None:
    """Raise `SignatureError` for a constant that a kernel lists as not to be compiled in."""
    for parameter in parameters:
        if parameter.is_constexpr and not (parameter.by_value and parameter.by_alignment):
            where = "do_not_specialize/do_not_specialize_on_alignment"
            raise SignatureError(
                f"{parameter.name} of {kernel} is a constexpr, whose value is always compiled in",
                hint=f"take it out of {where}, or leave its annotation out",
                upstream=f"{parameter.name} marked as constexpr and listed in {where}. Remove constexpr designation or "
                "skip listing.",
            )


class CallShape:
    """How calls with `count` positional arguments and the keywords `keywords` give the parameters their values.

    Of `everything = (*positional, *keyword values, *shape.defaults)`, `pick(everything)` gives the arguments in the
    order of the parameters, and `key(everything)` what tells apart the calls that may need different code whatever
    their other arguments: constants and options. `variants` is where the launcher keeps what was made for such calls,
    by key. `option_names` are the keywords that say how to compile. Raises `ArgumentError` for calls that do not fit.
    """

    def __init__(
        self, fn: LanguageFunction, parameters: Sequence[Parameter], count: int, keywords: Sequence[str]
    ) -> None:
        self._fn = fn
        self.count = count
        self.keywords = tuple(keywords)
        self.variants: dict[Any, tuple[tuple[Callable[..., Any], Any], ...]] = {}
        known = {parameter.name for parameter in parameters}
        for name in keywords:
            if name not in known:
                self._check_option(name, known)
        self.option_names = tuple(
            name
            for name in keywords
            if name in (_OPTION_DEFAULTS if name in known else LAUNCH_OPTIONS)
            or (name not in known and name not in IGNORED_OPTIONS)
        )
        given = {parameter.name: parameter.index for parameter in parameters[:count]}
        if count > len(parameters):
            self._fail(f"takes {len(parameters)} arguments and got {count}")
        for position, name in enumerate(keywords):
            if name in given:
                self._fail(f"got two values for {name}")
            given[name] = count + position
        left = [parameter for parameter in parameters if parameter.name not in given]
        if missing := [parameter.name for parameter in left if not parameter.has_default]:
            self._fail(f"got no value for {', '.join(missing)}")
        given |= {parameter.name: count + len(keywords) + i for i, parameter in enumerate(left)}
        self.defaults = tuple(parameter.default for parameter in left)
        constants = [given[parameter.name] for parameter in parameters if parameter.is_constexpr]
        self.order = [given[parameter.name] for parameter in parameters]
        self.options = [given[name] for name in self.option_names]
        self.pick: Pick = _picker(self.order)
        self.key: Pick = _picker([*constants, *self.options])

    def _check_option(self, name: str, known: Iterable[str]) -> None:
        if name in (*LAUNCH_OPTIONS, *REFUSED) or name in IGNORED_OPTIONS or name in known_options():
            return
        options = (*LAUNCH_OPTIONS, *known_options())
        hint = did_you_mean(name, [*known, *options]) or f"The options are {', '.join(options)}."
        self._fail(f"has no parameter {name!r}, and there is no such option", hint)

    def _fail(self, message: str, hint: str | None = None) -> NoReturn:
        signature = f"{self._fn.__name__}{self._fn.signature_text}"
        raise ArgumentError(f"{self._fn.__name__} {message}", expected=signature, hint=hint)


def _picker(indices: Sequence[int]) -> Pick:
    """A function that gives the items of a tuple at `indices`, as a tuple."""
    if not indices:
        return lambda _: ()
    if len(indices) == 1:
        (only,) = indices
        return lambda items: (items[only],)
    return itemgetter(*indices)
