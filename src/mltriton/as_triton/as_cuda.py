"""The CPU in place of a CUDA device, for programs that insist on one: `--as-cuda`, off by default.

Level: user. Needs torch. `show_cpu_as_cuda()` lets the questions of `torch.cuda` be answered for the CPU and turns the
device "cuda" into "cpu" wherever torch's functions are called in this thread. Guarantees: tensors lie in main memory;
what moves between devices shares no memory with what it came from, unless it gathers gradients. What it cannot do:
`torch.device("cuda")` by itself stays what it is (`x.device == "cuda"` is false), threads that the program starts see
no CUDA device, and nothing here runs CUDA code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from mltriton.runtime.driver import Driver, driver

# What is shown in whose place; `mltriton run --explain` prints it.
SHOWN: Mapping[str, str] = {
    "torch.cuda.is_available()": "is True, there is one device, of compute capability 8.0",
    "torch.cuda.get_device_properties()": "has a multiprocessor for each thread of a launch",
    "torch.cuda.synchronize(), Stream, Event": "do nothing, but that events measure time",
    'device="cuda", .cuda(), .to("cuda")': "give tensors in main memory",
    "Tensor.is_cuda": "is True of every tensor",
    'torch.autocast("cuda")': "is the CPU's",
    "torch.cpu": "answers what only torch.cuda is asked, too: getattr(torch, tensor.device.type)",
    'torch.Generator(device="cuda")': "is one of the CPU",
}
_CAPABILITY = (8, 0)


class Stream:
    """A stream of launches: on the CPU a launch has run when it returns."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def synchronize(self) -> None:
        """Nothing is under way."""

    def wait_stream(self, stream: object) -> None:
        """Nothing is under way."""

    def wait_event(self, event: object) -> None:
        """Nothing is under way."""

    def query(self) -> bool:
        """Whether everything has run: it has."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Remember the time."""
        event = event or Event()
        event.record(self)
        return event


class Event:
    """A point in time."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._seconds = 0.0

    def record(self, stream: object = None) -> None:
        """It is now."""
        self._seconds = time.perf_counter()

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds from here to another event."""
        return (other._seconds - self._seconds) * 1e3

    def synchronize(self) -> None:
        """It has come."""

    def wait(self, stream: object = None) -> None:
        """It has come."""

    def query(self) -> bool:
        """Whether it has come: it has."""
        return True


def _properties(_device: object = None) -> SimpleNamespace:
    known = Driver().utils.get_device_properties(0)
    return SimpleNamespace(
        name="CPU (mltriton)",
        major=_CAPABILITY[0],
        minor=_CAPABILITY[1],
        multi_processor_count=known["multiprocessor_count"],
        warp_size=known["warpSize"],
        total_memory=_memory(),
        shared_memory_per_block=known["max_shared_mem"],
        shared_memory_per_block_optin=known["max_shared_mem"],
        shared_memory_per_multiprocessor=known["max_shared_mem"],
        regs_per_multiprocessor=known["max_num_regs"],
        max_threads_per_multi_processor=1024,
        L2_cache_size=1 << 20,
        gcnArchName="",
    )


def _memory() -> int:
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _always(value: object) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


# What `torch.cuda` gets.
_ANSWERS: Mapping[str, Any] = {
    **{name: _always(True) for name in ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported")},
    **{name: _always(0) for name in ("current_device", "memory_allocated", "memory_reserved", "max_memory_allocated")},
    **{
        name: _always(None)
        for name in (
            *("init", "synchronize", "set_device", "set_stream", "empty_cache", "ipc_collect", "max_memory_reserved"),
            *("reset_peak_memory_stats", "reset_max_memory_allocated", "_lazy_init"),
        )
    },
    **{name: _always(nullcontext()) for name in ("device", "device_of", "stream")},
    **{name: _always(Stream()) for name in ("current_stream", "default_stream")},
    "device_count": _always(1),
    "get_device_capability": _always(_CAPABILITY),
    "get_device_name": _always("CPU (mltriton)"),
    "get_device_properties": _properties,
    "mem_get_info": lambda _device=None: (_memory(), _memory()),  # pyright: ignore[reportUnknownLambdaType]
    "get_arch_list": _always(["sm_80"]),
    "is_current_stream_capturing": _always(False),
    "Stream": Stream,
    "Event": Event,
}


def _on_cpu(value: Any) -> Any:
    """A device's name or object with the CPU in CUDA's place; anything else as it is."""
    if isinstance(value, str):
        return "cpu" if value.partition(":")[0] == "cuda" else value
    if type(value).__name__ == "device" and value.type == "cuda":
        return type(value)("cpu")
    return value


def _copied(tensor: Any) -> Any:
    """What goes to a device does not share the memory that it comes from; one that gathers gradients stays itself."""
    return tensor if tensor.requires_grad else tensor.clone()


def _mode(torch: Any) -> Any:
    """The mode that changes devices in calls of torch's functions."""
    cuda, pin, to, device = torch.Tensor.cuda, torch.Tensor.pin_memory, torch.Tensor.to, torch.device

    class CudaIsCpu(torch.overrides.TorchFunctionMode):  # pyright: ignore[reportUntypedBaseClass]
        """Calls functions on the CPU instead."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (cuda, pin):
                return _copied(args[0]) if func == cuda else args[0]
            given: dict[str, Any] = {} if kwargs is None else kwargs
            named = {name: _on_cpu(value) for name, value in given.items() if name != "pin_memory"}
            made = func(*map(_on_cpu, args), **named)
            if func != to or made is not args[0]:
                return made
            return (
                _copied(made) if any(isinstance(value, (str, device)) for value in (*args, *given.values())) else made
            )

    return CudaIsCpu()


def show_cpu_as_cuda() -> None:
    """Let the CPU stand for a CUDA device from now on, in this process and thread."""
    torch: Any = import_module("torch")
    if getattr(torch.cuda, "_is_mltriton", False):
        return
    for name, answer in _ANSWERS.items():
        setattr(torch.cuda, name, answer)
    torch.cuda.manual_seed = torch.cuda.manual_seed_all = torch.default_generator.manual_seed
    torch.cuda.get_rng_state, torch.cuda.set_rng_state = _state_of_random_numbers(torch)
    torch.cuda._is_mltriton = True
    driver.set_active(Driver())  # whatever GPUs there are
    for name, answer in _ANSWERS.items():  # Programs ask getattr(torch, tensor.device.type).
        if not name.startswith("_") and not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, answer)
    begin = torch.autocast.__init__

    def autocast(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        begin(self, _on_cpu(device_type), *args, **kwargs)

    torch.autocast.__init__ = autocast
    torch.Tensor.is_cuda = property(_always(True))
    torch.Generator = _generator(torch.Generator)
    mode = _mode(torch)
    torch.autograd._engine_run_backward = _within(mode, torch.autograd._engine_run_backward)
    cast("Any", sys.modules[__name__])._entered = mode.__enter__()


def _state_of_random_numbers(torch: Any) -> tuple[Callable[..., Any], Callable[..., None]]:
    """What gives and takes the state of the CPU's generator whatever the device."""

    def get(device: Any = "cuda") -> Any:
        return torch.get_rng_state()

    def put(new_state: Any, device: Any = "cuda") -> None:
        torch.set_rng_state(new_state)

    return get, put


def _generator(known: Any) -> Any:
    """torch's generator of random numbers, made for the CPU whatever the device."""

    class AnyGenerator(type(known)):  # pyright: ignore[reportUntypedBaseClass]
        """torch's own generators are generators."""

        def __instancecheck__(self, instance: object) -> bool:
            return isinstance(instance, known)

    class Generator(known, metaclass=AnyGenerator):  # pyright: ignore[reportUntypedBaseClass]
        """Made for the CPU; what is made is of torch's own type."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return known(device=_on_cpu(device))

    return Generator


def _within(mode: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """`run` in a mode of which torch's functions, `backward` among them, know nothing while the mode handles them."""

    def run_within(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return run(*args, **kwargs)

    return run_within
