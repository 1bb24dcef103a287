"""A writer of LLVM IR text: modules, functions, structured control flow.

Level: `llvm`. Takes typed values and gives IR text that LLVM's parser accepts. Control flow is structured (`loop`,
`when`, `choose`), so blocks are emitted in dominance order and SSA needs no repair.
Guarantees: integer arithmetic on constants is folded, and a pure instruction whose operands were seen before in a
dominating block reuses the first result, so emitters may ask for the same address twice without paying for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager

from mltriton.targets.llvm.instruction import Instruction, Lines, Names, in_order
from mltriton.targets.llvm.instructions import Instructions
from mltriton.targets.llvm.types import I64, PTR, SHARED_PTR, VOID, Type, Value, constant

WORKGROUP_ALIGNMENT = 64  # of the memory that a workgroup shares, in bytes


class Module:
    """One LLVM module under construction.

    `attributes` is the text of the attribute group every function carries (target CPU and flags).
    """

    def __init__(self, attributes: str = "") -> None:
        self._attributes = attributes
        self._declarations: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self.texts: dict[str, bytes] = {}  # the constants that are bytes
        self.meanings: dict[str, object] = {}  # what functions do that a later step writes, by name
        self._functions: dict[str, Function] = {}
        self._definitions: dict[str, str] = {}
        self._nodes, self._named = ["!{i32 1}"], list[str]()

    def node(self, content: str) -> str:
        """The name of a metadata node with that content, such as `i32 16`."""
        text = f"!{{{content}}}"
        if text not in self._nodes:
            self._nodes.append(text)
        return f"!{self._nodes.index(text)}"

    def name_nodes(self, name: str, *nodes: str) -> None:
        """Named metadata: what LLVM looks for by name."""
        self._named.append(f"!{name} = !{{{', '.join(nodes)}}}")

    def declare(self, name: str, result: Type, parameters: Sequence[Type], *, variadic: bool = False) -> None:
        """Declare an external function or intrinsic, once or several times; `variadic`: it takes further arguments."""
        types = [*(parameter.text for parameter in parameters), *["..."] * variadic]
        self._declarations.setdefault(name, f"declare {result} @{name}({', '.join(types)})")

    def undeclare(self, name: str) -> None:
        """Forget a declaration that nothing needs any more."""
        self._declarations.pop(name, None)

    def variable(self, name: str, initial: str) -> Value:
        """The address of an exported variable; `initial` is its type and first value."""
        self._globals.setdefault(name, f"@{name} = global {initial}, align 8")
        return Value(PTR, f"@{name}")

    def launched_memory(self, name: str, align: int) -> Value:
        """The address of the bytes that all threads of a workgroup share, of which the launch says how many."""
        self._globals.setdefault(name, f"@{name} = external addrspace(3) global [0 x i8], align {align}")
        return Value(SHARED_PTR, f"@{name}")

    def workgroup_memory(self, name: str, size: int) -> Value:
        """The address of `size` bytes that all threads of a workgroup share."""
        self._globals.setdefault(
            name, f"@{name} = internal addrspace(3) global [{size} x i8] poison, align {WORKGROUP_ALIGNMENT}"
        )
        return Value(SHARED_PTR, f"@{name}")

    def bytes_constant(self, name: str, data: bytes, pointer: Type = PTR) -> Value:
        """The address, of type `pointer`, of a private constant that holds `data`."""
        escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data)
        space = pointer.element.removeprefix("ptr")
        self.texts.setdefault(name, data)
        self._globals.setdefault(
            name, f'@{name} = private unnamed_addr{space} constant [{len(data)} x i8] c"{escaped}", align 8'
        )
        return Value(pointer, f"@{name}")

    def function(
        self,
        name: str,
        result: Type,
        parameters: Sequence[tuple[str, Type]],
        linkage: str = "internal",
        extra: str = "",
        attachments: str = "",
        *,
        keeps_parts: bool = False,
    ) -> Function:
        """Start a function. `parameters` are (name, type) pairs; a name may carry attributes: ("noalias a", PTR).
        `attachments` is its metadata. With `keeps_parts` others than LLVM can read its instructions.
        """
        if name in self._functions:
            raise ValueError(f"function {name!r} is defined twice")
        linkage = f"{linkage} " if linkage else ""
        function = Function(self, name, result, parameters, linkage, extra, attachments, keeps_parts=keeps_parts)
        self._functions[name] = function
        return function

    def define(self, name: str, text: str) -> None:
        """A function that is text already; repeating a definition is fine."""
        self._definitions.setdefault(name, text)

    def put_last(self, function: Function) -> None:
        """Let a function stand behind the others that there are."""
        self._functions[function.name] = self._functions.pop(function.name)

    def defines(self, name: str) -> bool:
        """Whether a function of that name was started here."""
        return name in self._functions

    @property
    def text(self) -> str:
        """The whole module."""
        declarations = [line for name, line in self._declarations.items() if name not in self._functions]
        parts = [*self._globals.values(), "", *declarations, ""]
        parts += [*(function.text for function in self._functions.values()), *self._definitions.values()]
        parts += [f"attributes #0 = {{ nounwind {self._attributes} }}", *self._named]
        parts += [*(f"!{number} = {node}" for number, node in enumerate(self._nodes)), ""]
        return "\n".join(parts)


class Carrying:
    """An open loop, and the values `carried` into this iteration."""

    def __init__(self, carried: Sequence[Value]) -> None:
        self.carried = list(carried)
        self._next: list[Value] | None = None

    def yield_(self, *values: Value) -> None:
        """Say what the next iteration is given, in the order of `carried`."""
        self._next = list(values)

    def next_values(self) -> list[Value]:
        """What `yield_` was given; an error when it was forgotten or its types differ."""
        values = self._next if self._next is not None or self.carried else []
        if values is None or [value.type for value in values] != [value.type for value in self.carried]:
            raise ValueError(f"a loop carries {[str(v.type) for v in self.carried]} but yields {values}")
        return values


class Loop(Carrying):
    """An open counted loop: its `index` and, behind it, the `results`."""

    def __init__(self, index: Value, carried: Sequence[Value]) -> None:
        super().__init__(carried)
        self.index, self.results = index, list[Value]()


class While(Carrying):
    """An open `while` loop: what comes before `leave_unless` decides, what comes after it is the body.

    Values computed before `leave_unless` (the carried ones among them) may be used after the loop.
    """

    def __init__(self, function: Function, carried: Sequence[Value], exit_label: str, body_label: str) -> None:
        super().__init__(carried)
        self.function, self.exit_label, self.body_label = function, exit_label, body_label

    def leave_unless(self, condition: Value) -> None:
        """Go on with the body only where the i1 `condition` holds."""
        self.function.branch_if(condition, self.body_label, self.exit_label)
        self.function.open_block(self.body_label)


class Function(Instructions):
    """One function under construction: the instructions of `Instructions` plus structured control flow."""

    def __init__(
        self,
        module: Module,
        name: str,
        result: Type,
        parameters: Sequence[tuple[str, Type]],
        linkage: str,
        extra: str,
        attachments: str = "",
        *,
        keeps_parts: bool = False,
    ) -> None:
        super().__init__(module.declare, keeps_parts=keeps_parts)
        self.module, self.name = module, name
        names = [parameter.split()[-1] for parameter, _ in parameters]
        self.parameters = [Value(type_, f"%{name}") for name, (_, type_) in zip(names, parameters, strict=True)]
        attributes = [" ".join(parameter.split()[:-1]) for parameter, _ in parameters]
        signature = ", ".join(
            " ".join(filter(None, (value.type.text, attribute, value.text)))
            for value, attribute in zip(self.parameters, attributes, strict=True)
        )
        self._header = f"define {linkage}{result} @{name}({signature}) {extra}#0 {attachments}{{"
        self._entry_lines: Lines = []
        # The lines in front of each open loop and how many scopes reach there; None where that is no place of its own.
        self._before_loops: list[tuple[Lines, int] | None] = []

    @property
    def instructions(self) -> Iterator[Instruction]:
        """All of them behind the label of the first block, of a function that keeps their parts."""
        for line in in_order([self._entry_lines, self.lines]):
            assert isinstance(line, Instruction), "a function that keeps parts"
            yield line

    def taken(self) -> list[Instruction]:
        """All instructions but the allocas, which the function is left without: to be written anew."""
        lines, self.lines, self.current_block = list(in_order(self.lines)), [], "entry"
        return [line for line in lines if isinstance(line, Instruction)]

    @property
    def text(self) -> str:
        """The function's definition."""
        return "\n".join([self._header, "entry:", *map(str, in_order([self._entry_lines, self.lines])), "}", ""])

    def alloca(self, type_: Type, count: int = 1, align: int = 64) -> Value:
        """Stack space for `count` values, made once at function entry."""
        result = self.fresh("slot")
        text = f"alloca {f'[{count} x {type_}]' if count > 1 else type_}, align {align}"
        self._entry_lines.append(Instruction(text, "alloca", result, type_))
        return Value(PTR, result)

    @contextmanager
    def _at(self, place: Lines) -> Generator[None]:
        """What is appended now stands there."""
        here, self.lines = self.lines, place
        yield
        self.lines = here

    def ret(self, value: Value | None = None) -> None:
        """Return from the function."""
        self.line(f"ret {value}" if value is not None else f"ret {VOID}", "ret")

    @contextmanager
    def loop(
        self,
        start: Value | int,
        stop: Value | int,
        step: Value | int = 1,
        carried: Sequence[Value] = (),
        *,
        at_least_once: bool = False,
        unsigned: bool = False,
        name: str = "i",
    ) -> Generator[Loop]:
        """A loop `for index in range(start, stop, step)` with a positive step and signed 64-bit index, or one of the
        bounds' type, which `unsigned` compares without a sign.

        With `at_least_once` the caller promises start < stop and the test moves to the bottom. Constants that give a
        single iteration give straight-line code.
        """
        first, last, stride = _i64(start), _i64(stop), _i64(step)
        if _trip_count(first, last, stride) == 1:
            with self._only_iteration(first, carried) as loop:
                yield loop
            return
        below = "ult" if unsigned else "slt"
        header, body, exit_ = self.label(f"{name}.head"), self.label(f"{name}.body"), self.label(f"{name}.exit")
        earlier: Lines = []
        phis_at: Lines = []
        before = self.current_block
        self.lines.append(earlier)
        self._before_loops.append((earlier, len(self._scopes)))
        self.branch(header)
        self.open_block(header)
        index = self.counter(name, () if unsigned else (first, last), first.type)
        phis = [Value(value.type, self.fresh("carry")) for value in carried]
        loop = Loop(index, phis)
        self.push_scope()
        self.lines.append(phis_at)
        if not at_least_once:
            self.branch_if(self.icmp(below, index, last), body, exit_)
            self.open_block(body)
        yield loop
        following, latch = self.add(index, stride), self.current_block
        if at_least_once:
            self.branch_if(self.icmp(below, following, last), header, exit_)
        else:
            self.branch(header)
        self.pop_scope()
        values = loop.next_values()
        loop.results = values if at_least_once else phis
        self._write_phis(phis_at, [index, *phis], [first, *carried], [following, *values], (before, latch))
        self._before_loops.pop()
        self.open_block(exit_)

    @contextmanager
    def _only_iteration(self, index: Value, carried: Sequence[Value]) -> Generator[Loop]:
        loop = Loop(index, carried)
        self._before_loops.append(None)
        yield loop
        self._before_loops.pop()
        loop.results = loop.next_values()

    def _write_phis(
        self, at: Lines, phis: Sequence[Value], first: Sequence[Value], following: Sequence[Value], blocks: Names
    ) -> None:
        with self._at(at):
            for phi, *values in zip(phis, first, following, strict=True):
                self.phi(phi, tuple(values), blocks)

    @property
    def innermost_loop(self) -> object:
        """Another object for each open loop; None outside of loops."""
        return self._before_loops[-1] if self._before_loops else None

    @contextmanager
    def before_loop(self) -> Generator[None]:
        """Straight code that runs once, in front of the innermost open loop; here where there is none, or it runs only
        once. Operands must be known there.
        """
        outer = self._before_loops[-1] if self._before_loops else None
        if outer is None:
            yield
            return
        here, self._scopes = self._scopes, self._scopes[: outer[1]]
        with self._at(outer[0]):
            yield
        self._scopes = here

    @contextmanager
    def when(self, condition: Value, name: str = "if") -> Generator[None]:
        """Code that runs only where the i1 `condition` holds."""
        if condition.literal is not None and condition.literal:
            yield
            return
        then, end = self.label(f"{name}.then"), self.label(f"{name}.end")
        self.branch_if(condition, then, end)
        self.open_block(then)
        self.push_scope()
        yield
        self.pop_scope()
        self.branch(end)
        self.open_block(end)

    def choose(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
        name: str = "if",
    ) -> list[Value]:
        """Run one of two pieces of code and give the values of the one that ran."""
        if condition.literal is not None:
            return list(then() if condition.literal else otherwise())
        then_label, else_label = self.label(f"{name}.then"), self.label(f"{name}.else")
        end = self.label(f"{name}.end")
        self.branch_if(condition, then_label, else_label)
        arms: list[tuple[list[Value], str]] = []
        for label, build in ((then_label, then), (else_label, otherwise)):
            self.open_block(label)
            self.push_scope()
            values = list(build())
            self.pop_scope()
            arms.append((values, self.current_block))
            self.branch(end)
        self.open_block(end)
        (left, left_block), (right, right_block) = arms
        results = [Value(value.type, self.fresh()) for value in left]
        for result, *values in zip(results, left, right, strict=True):
            self.phi(result, tuple(values), (left_block, right_block))
        return results

    @contextmanager
    def repeat(self, carried: Sequence[Value], name: str = "while") -> Generator[While]:
        """A general loop: `body.leave_unless(condition)` once, then `body.yield_(...)`; see `While`."""
        header = self.label(f"{name}.head")
        before = self.current_block
        self.branch(header)
        self.open_block(header)
        phis = [Value(value.type, self.fresh("carry")) for value in carried]
        phis_at: Lines = []
        self.lines.append(phis_at)
        self.push_scope()
        body = While(self, phis, self.label(f"{name}.exit"), self.label(f"{name}.body"))
        self._before_loops.append(None)
        yield body
        self._before_loops.pop()
        latch = self.current_block
        self.branch(header)
        self.pop_scope()
        self._write_phis(phis_at, phis, carried, body.next_values(), (before, latch))
        self.open_block(body.exit_label)


def _i64(value: Value | int) -> Value:
    return constant(I64, value) if isinstance(value, int) else value


def _trip_count(start: Value, stop: Value, step: Value) -> int | None:
    if start.literal is None or stop.literal is None or step.literal is None:
        return None
    return max(0, -(-(int(stop.literal) - int(start.literal)) // int(step.literal)))
