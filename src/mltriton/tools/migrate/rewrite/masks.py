"""Rule 9 in a function: masked loads classified, those that can be rewritten as loads of descriptors, the rest noted.

Level: source text. A kernel that keeps a block pointer keeps its masked loads as well, until that one is dealt with: a
second run changes nothing. Statements that only computed what a rewritten load no longer needs go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.choice import Choice
from mltriton.tools.migrate.classify.group import Access, Construct, Group
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.flow import Env
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import cst, names_in, walk
from mltriton.tools.migrate.report.notes import performance
from mltriton.tools.migrate.result import Note, Options, Result, Site
from mltriton.tools.migrate.rewrite.edits import Edits, constantly
from mltriton.tools.migrate.rewrite.masked_loads import MaskedLoads, NotExpressibleError, Plan, masked_loads, stem
from mltriton.tools.migrate.rewrite.naming import Namer

_BOUND = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_REST = {"boundary": "is a bound", "data-dependent": "depends on data", "mixed": "is in part a bound"}


def rewrite_masked_loads(
    planner: MaskedLoads, pointers: Pointers, namer: Namer, edits: Edits, result: Result, *, settled: bool
) -> bool:
    """Rewrite or note the masked loads of one function; `settled`: none of its block pointers is left. True where one
    was rewritten.
    """
    source = planner.source
    plans: list[Plan] = []
    for node, at in masked_loads(source, pointers):
        kind = classify(source, pointers, node, at)
        result.counts[f"mask: {kind}"] += 1
        line = source.line(node)
        try:
            _demand(kind, planner.options, settled=settled)
            plans.append(planner.plan(node, at))
            result.counts["masked load -> descriptor"] += 1
        except NotExpressibleError as reason:
            text = f"masked load of pointers, left: its mask {_REST[kind]}" + (f"; {reason}" if str(reason) else "")
            result.notes.append(Note(line, "mask", text))
    _write(source, pointers, plans, namer, edits, result)
    _drop_unused(source, pointers, planner.bounds, plans, edits)
    return bool(plans)


def note_masked_loads(planner: MaskedLoads, pointers: Pointers, result: Result) -> None:
    """One note on a kernel that has nothing but masked pointers: how many of its loads a descriptor could do."""
    reasons: Counter[str] = Counter()
    count = able = 0
    for node, at in masked_loads(planner.source, pointers):
        count += 1
        try:
            _demand(classify(planner.source, pointers, node, at), planner.options, settled=True)
            planner.plan(node, at)
            able += 1
        except NotExpressibleError as reason:
            reasons[str(reason)] += 1
    name = pointers.function.name.value
    text = f"{name}: {count} masked load{'s' * (count > 1)} of pointers left"
    if able:
        text += f"; --to descriptor writes {able} as loads of descriptors"
    elif planner.options.to != "pointer" and reasons:
        text += f": {reasons.most_common(1)[0][0]}"
    detail = "; ".join(f"{each} of them: {why}" for why, each in reasons.items() if why)
    result.notes.append(Note(planner.source.line(pointers.function), "mask", text, detail=detail))
    result.counts["masked loads in kernels without block pointers"] += count


def _demand(kind: str, options: Options, *, settled: bool) -> None:
    if kind == "data-dependent":
        raise NotExpressibleError("no bound says what shape a descriptor would have")
    if options.to == "pointer":
        raise NotExpressibleError("")
    if not settled:
        raise NotExpressibleError("it waits until the block pointers of this kernel are dealt with")


# Writing.


def _write(
    source: Source, pointers: Pointers, plans: Sequence[Plan], namer: Namer, edits: Edits, result: Result
) -> None:
    language = source.language() or "tl"
    made: dict[tuple[cst.CSTNode, str], str] = {}
    for plan in plans:
        text = _constructor(plan, language)
        if (plan.insertion, text) not in made:
            name = made[plan.insertion, text] = namer.fresh(f"{stem(plan).removesuffix('_ptr')}_desc")
            edits.insert(plan.insertion, [f"{name} = {text}"])
        name = made[plan.insertion, text]
        loaded = f"{name}.load([{', '.join(dim.offset for dim in plan.dims)}])" + (".T" if plan.is_transposed else "")
        other = 'float("nan")' if plan.padding else "0"
        edits.replace[plan.call] = constantly(
            f"{language}.where({plan.where}, {loaded}, {other})" if plan.where else loaded
        )
        start = source.positions[plan.call].start
        result.sites.setdefault(pointers.function.name.value, []).append(Site(start.line, start.column, "load"))
        line = source.line(plan.call)
        whole = "its mask is now the descriptor's shape" + (f", and a tl.where of {plan.where}" if plan.where else "")
        dropped = f"; dropped {' and '.join(plan.dropped)}" if plan.dropped else ""
        result.notes.append(Note(line, "change", f"`{name}`: replaced a masked load of pointers: {whole}{dropped}"))
        text, detail = _performance(source, pointers, plan)
        result.notes.append(Note(line, "performance", f"`{name}`: {text}", detail=detail))


def _constructor(plan: Plan, language: str) -> str:
    columns = zip(*((dim.extent, dim.stride, dim.size) for dim in plan.dims), strict=True)
    parts = ", ".join(f"({', '.join(column)}{',' if len(column) == 1 else ''})" for column in columns)
    padding = ', padding_option="nan"' if plan.padding else ""
    return f"{language}.make_tensor_descriptor({plan.base}, {parts}{padding})"


def _performance(source: Source, pointers: Pointers, plan: Plan) -> tuple[str, str]:
    """What is said of the same load through a block pointer."""
    ordered = [plan.dims[plan.permutation.index(dim)] for dim in range(len(plan.dims))]
    extents, strides, offsets, sizes = (
        tuple(map(cst.parse_expression, column))
        for column in zip(*((dim.extent, dim.stride, dim.offset, dim.size) for dim in ordered), strict=True)
    )
    base = cst.parse_expression(plan.base)
    construct = Construct(plan.call, plan.statement, base, extents, strides, offsets, sizes, ())
    every = frozenset(range(len(ordered)))
    access = Access(plan.call, plan.statement, "load", construct.base, {}, every, plan.padding)
    choice = Choice("descriptor", permutation=plan.permutation, padding=plan.padding)
    return performance(source, pointers, Group([construct], accesses=[access]), choice)


def _drop_unused(source: Source, pointers: Pointers, bounds: Bounds, plans: Sequence[Plan], edits: Edits) -> None:
    """Take away assignments to names that only rewritten loads read."""
    flow = pointers.flow
    gone = {id(each) for plan in plans for each in walk(plan.call) if isinstance(each, cst.Name)}
    kept = {name for plan in plans for text in _texts(plan) for name in names_in(cst.parse_expression(text))}
    waiting = {name for plan in plans for name in names_in(plan.call)} - kept
    while waiting:
        name = waiting.pop()
        own = [each for each in flow.definitions if each.name == name]
        targets = {id(each.target) for each in own}
        uses = [each for each in walk(pointers.function) if isinstance(each, cst.Name) and each.value == name]
        if not own or any(id(each) not in targets | gone for each in uses):
            continue
        if not all(_is_plain(each.statement, source, bounds) and each.statement not in edits.before for each in own):
            continue
        for each in own:
            edits.remove.add(each.statement)
            gone |= {id(part) for part in walk(each.statement) if isinstance(part, cst.Name)}
            waiting |= names_in(each.statement) - kept - {name}


def _texts(plan: Plan) -> list[str]:
    texts = [text for dim in plan.dims for text in (dim.extent, dim.stride, dim.offset, dim.size)]
    return [plan.base, *texts, *([plan.where] if plan.where else [])]


def _is_plain(statement: cst.CSTNode, source: Source, bounds: Bounds) -> bool:
    """Whether a statement does nothing but give one name a value."""
    if isinstance(statement, cst.Assign):
        if len(statement.targets) > 1 or not isinstance(statement.targets[0].target, cst.Name):
            return False
    elif not (isinstance(statement, cst.AugAssign) and isinstance(statement.target, cst.Name)):
        return False
    without = [each for each in walk(statement.value) if source.callee(each) not in ("arange", "max_contiguous")]
    return all(not isinstance(each, cst.Call) or bounds.is_pure_call(each) for each in without)


# Classification.


def classify(source: Source, pointers: Pointers, call: cst.Call, at: cst.CSTNode) -> str:
    """What a mask is: `boundary`, `data-dependent` or `mixed`."""
    arguments = source.arguments(call) or {}
    env = pointers.flow.before[at]
    parts = _conjuncts(arguments["mask"].value, pointers, env, 0)
    ranged = [_is_bound(part, pointers, at, source) for part in parts]
    if all(ranged):
        return "boundary"
    return "mixed" if any(ranged) else "data-dependent"


def _conjuncts(node: cst.BaseExpression, pointers: Pointers, env: Env, depth: int) -> list[cst.BaseExpression]:
    """The parts of a mask that are joined by `&`, through variables that are assigned once."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd):
        return [part for side in (node.left, node.right) for part in _conjuncts(side, pointers, env, depth)]
    if isinstance(node, cst.Subscript):
        return _conjuncts(node.value, pointers, env, depth)
    if isinstance(node, cst.Name) and depth < 4:
        reach = env.get(node.value, frozenset())
        values = [pointers.flow.definitions[index].value for index, _ in reach]
        if len(values) == 1 and values[0] is not None:
            return _conjuncts(values[0], pointers, env, depth + 1)
    return [node]


def _is_bound(node: cst.BaseExpression, pointers: Pointers, at: cst.CSTNode, source: Source) -> bool:
    """Whether a condition compares a range with a number that is the same for the whole block."""
    if not (isinstance(node, cst.Comparison) and len(node.comparisons) == 1):
        return False
    comparison = node.comparisons[0]
    if not isinstance(comparison.operator, _BOUND):
        return False
    sides = (_has_range(node.left, pointers, at, source, 0), _has_range(comparison.comparator, pointers, at, source, 0))
    return sides[0] != sides[1] and "loaded" not in sides


def _has_range(node: cst.CSTNode, pointers: Pointers, at: cst.CSTNode, source: Source, depth: int) -> bool | str:
    """Whether an expression contains a range of indices; `loaded` where it contains a block from memory."""
    callees = {source.callee(each) for each in walk(node)}
    if "arange" in callees:
        return True
    if "load" in callees:
        return "loaded"
    if depth > 4 or at not in pointers.flow.before:
        return False
    found: bool | str = False
    for name in names_in(node):
        for definition in pointers.flow.reaching(name, at):
            if definition.value is not None:
                inner = _has_range(definition.value, pointers, definition.statement, source, depth + 1)
                found = inner or found
    return found
