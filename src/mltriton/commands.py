"""The commands: each reads its options and calls one library function, imported when the command runs.

Adding a command is adding a function here and its library function in `mltriton.tools`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

import mltriton
from mltriton.errors import IRSyntaxError
from mltriton.targets.options import declared_by, known_options

app = typer.Typer(
    name="mltriton",
    help="A Triton compiler that lowers step by step: workgroup, warp, instruction.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Kernel = Annotated[
    str, typer.Argument(metavar="FILE.py:KERNEL", help="The kernel: a file or a module, which is run, and a name.")
]
Signature = Annotated[
    str, typer.Option("--signature", "-s", help='One entry a parameter: "*fp32:16, i32, 1024" (type, :hint, constant).')
]
Target = Annotated[str, typer.Option("--target", "-t", help="What to compile for, one of `mltriton targets`.")]
Warps = Annotated[int, typer.Option("--num-warps", "-w", min=1, help="Warps in one program instance.")]
WarpLevel = Annotated[
    bool, typer.Option("--warp-level", help="Every tensor belongs to one warp, as with @jit(warp_level=True).")
]
Stages = Annotated[int, typer.Option("--num-stages", "-n", min=1, help="Depth of software pipelining.")]
# How a kernel is compiled: options that several commands have, by the names that `mltriton.compile` gives them.
COMPILING: dict[str, tuple[Any, object]] = {
    "target": (Target, "cpu"),
    "num_warps": (Warps, 4),
    "num_stages": (Stages, 3),
    "warp_level": (WarpLevel, False),
}
for _name, (_field, _families) in known_options().items():
    _flag = typer.Option(f"--{_name.replace('_', '-')}", help=f"{', '.join(_families)}: {_field.metadata['says']}.")
    COMPILING[_name] = (Annotated[get_type_hints(declared_by(_families[0]))[_name], _flag], _field.default)
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random inputs.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small sizes: seconds instead of minutes.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; standard output otherwise.")]


# Those that say something of a program for a CPU that is called from C.
OF_C_PROGRAMS = ("target", "num_warps", "warp_level")


def compiling(command: Callable[..., None], names: Iterable[str] = COMPILING) -> Callable[..., None]:
    """Give a command options of `COMPILING`, which it gets as a dict named `how`."""

    @wraps(command)
    def run(**given: Any) -> None:
        how = {name: given.pop(name) for name in names}
        # A flag that is not set leaves it to the kernel.
        command(**given, how=how | {"warp_level": how["warp_level"] or None})

    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own if parameter.name != "how"
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in ((name, COMPILING[name]) for name in names)
    ]
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mltriton {mltriton.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """A Triton compiler that lowers step by step: workgroup, warp, instruction."""


@app.command()
def demo(
    quick: Quick = False,
    seed: Seed = 0,
    target: Annotated[str, typer.Option("--target", "-t", help="cpu, or cuda for an NVIDIA GPU.")] = "cpu",
) -> None:
    """Run GEMM, attention, softmax and layer norm through every level; check and time them."""
    from mltriton.tools.demo import how_timed, run_demo
    from mltriton.tools.demo_display import print_reports, progress

    timed = how_timed(target)
    with progress("demo") as on_step:
        reports = run_demo(quick=quick, seed=seed, on_step=on_step, target=target)
    print_reports(reports, timed=timed)
    raise typer.Exit(not all(report.ok for report in reports))


@app.command("compile")
@compiling
def compile_kernel(
    kernel: Kernel,
    signature: Signature,
    how: dict[str, Any],
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit",
            "-e",
            help="tt, ttg, warp, intrinsic, llvm, asm; of Xe spirv, isa, native; of NVIDIA ptx, sass, cubin; or all "
            "(needs -o DIR).",
            show_default="asm; with --remarks nothing",
        ),
    ] = None,
    output: Output = None,
    remarks: Annotated[
        bool, typer.Option("--remarks", help="Say on standard error how each access is done, and why not faster.")
    ] = False,
    programs: Annotated[
        int | None, typer.Option("--programs", min=1, help="Of a launch: with --remarks, in how many rounds they run.")
    ] = None,
) -> None:
    """Compile a kernel ahead of time and print one level of it, or write every level. The file given is imported: its
    code runs.
    """
    from mltriton.tools.aot import compile_kernel, emit_levels

    compiled = compile_kernel(kernel, signature, **how)
    if remarks:
        from mltriton.tools.remarks import kernel_remarks

        for remark in kernel_remarks(compiled, programs):
            typer.echo(remark, err=True)
        if emit is None and output is None:
            return
    images = {name: partial(compiled.image, name) for name in compiled.job.target.images}
    emit_levels(compiled.asm, emit or "asm", output, stem=kernel.rpartition(":")[2], images=images)


@app.command()
@partial(compiling, names=OF_C_PROGRAMS)
def aot(
    kernel: Kernel,
    signature: Signature,
    how: dict[str, Any],
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory to write into.")] = Path(),
    name: Annotated[str | None, typer.Option("--name", help="Of the C functions; the kernel's otherwise.")] = None,
) -> None:
    """Write a kernel as an object file and a header for C programs. The file given is imported: its code runs."""
    from mltriton.tools.aot import compile_kernel
    from mltriton.tools.c_object import write_c_object

    for file in write_c_object(compile_kernel(kernel, signature, **how), output, name):
        typer.echo(str(file))


@app.command()
def layout(
    what: Annotated[
        str,
        typer.Argument(metavar="ENCODING|TYPE|FILE.mlir|FILE.py:KERNEL", help="Whose layouts to show; FILE.py is run."),
    ],
    tensor: Annotated[
        str | None, typer.Option("--tensor", help="The tensor that the encoding is of: tensor<256x32xf16>.")
    ] = None,
    hw_view: Annotated[bool, typer.Option("--hw-view", help="Show elements by lane and register.")] = False,
    to: Annotated[str | None, typer.Option("--to", metavar="ENCODING", help="Show the conversion to this.")] = None,
    value: Annotated[str | None, typer.Option("--value", "-v", help="Of a program: the value to show.")] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE.svg|DIRECTORY", help="Draw it here; a directory takes several layouts."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Most rows of a table.")] = 16,
    columns: Annotated[int, typer.Option("--columns", min=1, help="Most columns of a table.")] = 16,
    signature: Annotated[str | None, typer.Option("--signature", "-s", help="Of a kernel: as for compile.")] = None,
    target: Annotated[
        str, typer.Option("--target", "-t", help="What a kernel is compiled for, and conversions cost.")
    ] = "generic",
    num_warps: Warps = 4,
    level: Annotated[str, typer.Option("--level", "-l", help="Of a kernel: ttg or warp.")] = "ttg",
) -> None:
    """Show which warp, lane and register hold each element of a tensor, and what a conversion costs. Of a program: each
    value with its line and layout. A Python file is imported: its code runs.
    """
    from mltriton.tools.layout_command import Asked, show

    kernel = None if signature is None else (signature, num_warps, level)
    typer.echo(show(Asked(what, tensor, to, value, target, kernel, hw_view, svg, rows, columns)))


def _passes(wanted: bool) -> None:
    if wanted:
        from mltriton.tools.opt import list_passes

        typer.echo(list_passes())
        raise typer.Exit


@app.command()
def opt(
    file: Annotated[typer.FileText, typer.Argument(metavar="FILE|-", help="IR text; - is standard input.")],
    passes: Annotated[str, typer.Option("--passes", "-p", metavar="PASS,PASS{OPTION=VALUE}")] = "",
    print_ir_after_all: Annotated[
        bool, typer.Option("--print-ir-after-all", help="Show the program after each pass on standard error.")
    ] = False,
    print_ir_after: Annotated[
        str, typer.Option("--print-ir-after", metavar="PASS,PASS", help="The same after these passes only.")
    ] = "",
    verify_each: Annotated[bool, typer.Option("--verify-each/--no-verify-each", help="Verify after each pass.")] = True,
    split_input_file: Annotated[
        bool, typer.Option("--split-input-file", help="Treat the parts between // ----- lines one by one.")
    ] = False,
    time_passes: Annotated[
        bool, typer.Option("--time-passes", help="Show how long each pass took on standard error.")
    ] = False,
    run_reproducer: Annotated[
        bool, typer.Option("--run-reproducer", help="Run the pipeline that a saved reproducer names.")
    ] = False,
    generic: Annotated[bool, typer.Option("--generic", help="Write generic MLIR syntax.")] = False,
    locations: Annotated[
        bool, typer.Option("--locations", help="Write the source location of each operation.")
    ] = False,
    output: Output = None,
    listed: Annotated[
        bool, typer.Option("--list-passes", callback=_passes, is_eager=True, help="Say what each pass does.")
    ] = False,
) -> None:
    """Run passes over IR text."""
    from mltriton.tools.aot import write_output
    from mltriton.tools.opt import run_opt

    try:
        given = file.read()
    except UnicodeDecodeError as error:
        raise IRSyntaxError(f"{file.name} is no text: {error}") from None
    text = run_opt(
        given,
        passes,
        filename=file.name,
        print_ir_after_all=print_ir_after_all,
        print_ir_after=print_ir_after,
        verify_each=verify_each,
        split_input_file=split_input_file,
        time_passes=time_passes,
        run_reproducer=run_reproducer,
        generic=generic,
        locations=locations,
        log=sys.stderr,
    )
    if output is None:
        sys.stdout.write(text)
    else:
        write_output(output, text)


@app.command()
@compiling
def verify(
    kernels: Annotated[
        list[str], typer.Argument(metavar="FILE.py:KERNEL|FILE.mlir...", help="What to check; FILE.py is run.")
    ],
    how: dict[str, Any],
    signature: Annotated[
        str | None, typer.Option("--signature", "-s", help="As in compile; the kernel's own example where it has one.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", "-a", help="NAME=128x64:fp32 (a random array) or NAME=VALUE; repeatable."),
    ] = None,
    grid: Annotated[str | None, typer.Option("--grid", "-g", help="One to three sizes: 8 or 8,4,1.")] = None,
    passes: Annotated[str, typer.Option("--passes", "-p", help="For IR text: run before and after each pass.")] = "",
    each_pass: Annotated[
        bool, typer.Option("--each-pass", help="Compare after every pass, not only every level.")
    ] = False,
    uninitialised: Annotated[
        bool, typer.Option("--uninitialised", help="A read of scratch or shared memory never written is an error.")
    ] = False,
    seed: Seed = 0,
    inputs: Annotated[int, typer.Option("--inputs", min=1, help="How many random inputs to run.")] = 1,
) -> None:
    """Run every level of a kernel on random input and say which one first disagrees. A Python file is imported: its
    code runs.
    """
    from mltriton.tools.launches import parse_grid
    from mltriton.tools.verify import check_asked, verify_kernel, verify_module

    check_asked(kernels, signature, passes)
    agree = True
    sizes = parse_grid(grid)
    for kernel in kernels:
        if kernel.endswith(".mlir"):
            report = verify_module(
                Path(kernel), passes, args=arg or (), grid=sizes or (1,), seed=seed, uninitialised=uninitialised
            )
        else:
            report = verify_kernel(
                kernel,
                signature,
                args=arg,
                grid=sizes,
                seed=seed,
                inputs=inputs,
                each_pass=each_pass,
                uninitialised=uninitialised,
                **how,
            )
        typer.echo(str(report))
        agree = agree and report.ok
    raise typer.Exit(not agree)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Which ones; all otherwise.")] = None,
    quick: Quick = False,
    directory: Annotated[Path, typer.Option("--directory", "-d", help="Where they lie.")] = Path("benchmarks"),
    json: Annotated[Path | None, typer.Option("--json", help="Write the measurements here too.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="For every library; with 1, CPU time is measured.")
    ] = None,
    target: Annotated[str, typer.Option("--target", "-t", help="cpu, or cuda for those on an NVIDIA GPU.")] = "cpu",
) -> None:
    """Time our kernels and the best library's side by side in one run; print the ratios."""
    from mltriton.tools.bench import run_benchmarks

    run_benchmarks(names or [], directory=directory, quick=quick, json=json, threads=threads, target=target)


@app.command()
def migrate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or directories to walk.")],
    diff: Annotated[bool, typer.Option("--diff", help="Show the change (the default).")] = False,
    write: Annotated[bool, typer.Option("--write", help="Edit the files.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 when something is left to migrate.")] = False,
    to: Annotated[str, typer.Option("--to", help="auto, descriptor or pointer.")] = "auto",
    target: Annotated[str, typer.Option("--target", help="Whose descriptors: xe, nvidia or any.")] = "xe",
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.md|.json|.html", help="Write old and new side by side, with notes."),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Run old and new kernels and compare every byte.")] = False,
    signature: Annotated[str | None, typer.Option("--signature", "-s", help="For --verify, as in compile.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show every note with its details.")] = False,
) -> None:
    """Rewrite block pointers to tensor descriptors, or to masked pointers where no descriptor is legal."""
    from mltriton.tools.migrate.command import run_migrate
    from mltriton.tools.migrate.result import Options

    modes = [name for name, given in (("diff", diff), ("write", write), ("check", check)) if given] or ["diff"]
    if len(modes) > 1:
        raise typer.BadParameter(f"--{modes[0]} and --{modes[1]} exclude each other")
    options = Options(to, target)
    ok = run_migrate(paths, options, mode=modes[0], report=report, verify=verify, signature=signature, explain=explain)
    raise typer.Exit(not ok)


@app.command()
def targets() -> None:
    """List the targets, what a warp is there, and the compile options of each."""
    from mltriton.tools.targets import list_targets

    typer.echo(list_targets())


@app.command()
def settings() -> None:
    """List the environment variables that are read, what each does, and what they say now."""
    from mltriton.tools.settings import list_settings

    typer.echo(list_settings())


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def run(
    program: Annotated[
        list[str], typer.Argument(metavar="SCRIPT|-m MODULE [ARGUMENT]...", help="A program that imports triton.")
    ],
    as_cuda: Annotated[bool, typer.Option("--as-cuda", help="Let the CPU stand for a CUDA device.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say first what is put in whose place.")] = False,
) -> None:
    """Run a program with mltriton in triton's place."""
    from mltriton.as_triton.program import run_program

    run_program(program, as_cuda=as_cuda, explain=explain)
