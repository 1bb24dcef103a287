"""`python -m triton.tools.link A.h B.h ... -o OUT`: variants of a kernel behind one C function.

Takes headers that `triton.tools.compile` (or `mltriton aot`) wrote for one kernel; writes OUT.h and OUT.c. NAME asks
what the caller of each variant must promise, most first, and calls the first one that fits. Variants with other
constants are other algorithms, in the order of the headers: NAME takes the first, NAME_algo the one with a number.
Guarantees: a call that no variant fits returns -2 and runs nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from mltriton.errors import OptionError
from mltriton.records import NamedTuple
from mltriton.tools.aot import print_files, write_output

_KERNEL = re.compile(r"^/\* The kernel (\w+) for [^;]*?(?:; (.*))?\. Written by mltriton\.$", re.MULTILINE)
_PROMISE = re.compile(r"^ \*   (\w+): (aligned to 16 bytes|a multiple of 16)$", re.MULTILINE)
_FUNCTION = re.compile(r"^int (\w+)\(([^)]*)\);$", re.MULTILINE)


class Variant(NamedTuple):
    """A compiled kernel as its header describes it."""

    header: str
    kernel: str
    constants: str
    function: str
    parameters: tuple[str, ...]
    promises: dict[str, str]

    @property
    def fits(self) -> str:
        """The condition in C that its caller keeps what it must."""
        values = [name if "multiple" in what else f"(uintptr_t){name}" for name, what in self.promises.items()]
        asked = [f"{value} % 16 == 0" for value in values]
        return " && ".join(asked) or "1"


def read_header(path: Path) -> Variant:
    """What a header says. Raises `OptionError` for one that mltriton did not write."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read {path}", found=str(error)) from None
    kernel, function = _KERNEL.search(text), _FUNCTION.search(text)
    if kernel is None or function is None:
        raise OptionError(f"{path} describes no kernel", expected="a header that triton.tools.compile wrote")
    parameters = tuple(item.strip() for item in function[2].split(","))
    return Variant(path.name, kernel[1], kernel[2] or "", function[1], parameters, dict(_PROMISE.findall(text)))


def link(headers: Sequence[Path], out: Path, prefix: str = "") -> tuple[Path, Path]:
    """Write OUT.h and OUT.c, and say where. Raises `OptionError` where the headers do not belong together."""
    variants = [read_header(path) for path in headers]
    first = variants[0]
    for variant in variants:
        if (variant.kernel, variant.parameters) != (first.kernel, first.parameters):
            expected = f"int {first.kernel}({', '.join(first.parameters)})"
            found = f"{variant.header}: int {variant.kernel}({', '.join(variant.parameters)})"
            raise OptionError("the headers are of different kernels", expected=expected, found=found)
    name = f"{prefix}{first.kernel}"
    if name in {variant.function for variant in variants}:
        raise OptionError(f"a variant is called {name} itself", hint="Give variants names (--out-name), or a --prefix.")
    algorithms: dict[str, list[Variant]] = {}
    for variant in variants:
        algorithms.setdefault(variant.constants, []).append(variant)
    files = out.with_suffix(".h"), out.with_suffix(".c")
    write_output(files[0], _header(name, first, algorithms))
    write_output(files[1], _source(name, files[0].name, first, algorithms))
    return files


def _header(name: str, first: Variant, algorithms: Iterable[str]) -> str:
    listed = ", ".join(first.parameters)
    known = "".join(f" *   {number}: {constants or 'no constants'}\n" for number, constants in enumerate(algorithms))
    return _HEADER.format(name=name, guard=f"{name.upper()}_LINKED_H", listed=listed, known=known)


def _source(name: str, header: str, first: Variant, algorithms: dict[str, list[Variant]]) -> str:
    names = [parameter.replace("*", " ").split()[-1] for parameter in first.parameters]
    includes = [variant.header for variants in algorithms.values() for variant in variants]
    cases = "".join(_case(number, variants, names) for number, variants in enumerate(algorithms.values()))
    return _SOURCE.format(
        name=name,
        includes="".join(f'#include "{item}"\n' for item in [header, *includes]),
        listed=", ".join(first.parameters),
        passed=", ".join(names),
        cases=cases,
        count=len(algorithms),
    )


def _case(number: int, variants: Iterable[Variant], names: Sequence[str]) -> str:
    ordered = sorted(variants, key=lambda variant: -len(variant.promises))
    tries = "".join(f"        if ({each.fits}) return {each.function}({', '.join(names)});\n" for each in ordered)
    return f"    case {number}:\n{tries}        return -2;\n"


_HEADER = """\
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* All programs of a grid, on the calling thread. 0, -1 where there is no memory, -2 where no variant fits. */
int {name}({listed});

/* The same by one of these algorithms:
{known} */
int {name}_algo(int algorithm, {listed});
int {name}_get_num_algos(void);

#ifdef __cplusplus
}}
#endif
#endif
"""
_SOURCE = """\
{includes}
int {name}_algo(int algorithm, {listed}) {{
    switch (algorithm) {{
{cases}    default:
        return -2;
    }}
}}

int {name}({listed}) {{ return {name}_algo(0, {passed}); }}

int {name}_get_num_algos(void) {{ return {count}; }}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Link; print the files that were written. The status is 1 after an error, which is printed."""
    parser = argparse.ArgumentParser(prog="triton.tools.link", description="Put variants of a kernel behind one name.")
    parser.add_argument("headers", nargs="+", type=Path, help="headers that triton.tools.compile wrote")
    parser.add_argument("--out", "-o", type=Path, required=True, help="the files without .h and .c")
    parser.add_argument("--prefix", default="", help="of the name of the function")
    given = parser.parse_args(arguments)
    return print_files(lambda: link(given.headers, given.out, given.prefix))


if __name__ == "__main__":
    sys.exit(main())
