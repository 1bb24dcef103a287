"""What functions in this folder may use besides Python's own syntax, for editors and type checkers.

`translation` says what becomes of it. Numbers have the size that their type says, and wrap.
"""

from collections.abc import Callable, Generator
from typing import Annotated, Any, Generic, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

i1 = bool
i8 = int
i32 = int
i64 = int
f64 = float

class ptr: ...  # an address
class Struct: ...  # a value of such a class is the address of its fields; calling the class makes room on the stack

class Array(Generic[T]):
    """Values one after the other, where an address of them is; the values themselves in `Annotated[Array[T], 64]`."""

    def __getitem__(self, index: i64) -> T: ...
    def __setitem__(self, index: i64, value: T) -> None: ...

Address = Annotated[T, "address"]  # in an array, where a structure itself would stand otherwise

class Word(Struct):
    """An i32 on a cache line of its own, for threads to meet at: accesses are sequentially consistent."""

    def load(self) -> i32: ...
    def store(self, value: i32) -> None: ...
    def add(self, value: i32) -> None: ...
    def subtract(self, value: i32) -> None: ...
    def try_lock(self) -> i1: ...  # 0 becomes 1, and what was done before the last unlock is seen
    def unlock(self) -> None: ...

class Lock(Struct):
    """A `Word` inside a structure, of which only `try_lock` and `unlock` are asked."""

    def try_lock(self) -> i1: ...
    def unlock(self) -> None: ...

class Relaxed(Generic[T]):
    """A number that threads read and write whole, in no order with anything else."""

    def load(self) -> T: ...
    def store(self, value: T) -> None: ...
    def exchange(self, expected: T, value: T) -> tuple[T, i1]: ...  # what was found there; whether that was expected

def exported(function: F) -> F: ...  # Python or another file calls it
def noinline(function: F) -> F: ...
def alwaysinline(function: F) -> F: ...
def elsewhere(function: F) -> F: ...  # the file of the machine has it
def up_to(end: i64) -> Generator[i64]: ...
def unsigned(value: i1 | i32) -> i64: ...  # as an i64, read without a sign
def signed(value: i32) -> i64: ...
def as_float(value: i64) -> f64: ...
def as_integer(value: f64) -> i64: ...
def as_number(address: object) -> i64: ...
def below(a: i64, b: i64) -> i1: ...  # a < b, read without a sign
def umin(a: i64, b: i64) -> i64: ...
def umax(a: i64, b: i64) -> i64: ...
def smax(a: i64, b: i64) -> i64: ...
def fmax(a: f64, b: f64) -> f64: ...
def ashr(a: i64, b: i64) -> i64: ...  # `>>` brings in zeros
def multiplied(a: i64, b: i64) -> tuple[i64, i1]: ...  # the product, and whether it has more bits
def f64_bits(value: f64) -> i64: ...
def f32_bits(bits: i64) -> i64: ...  # of an f64's bits those of the f32 next to it
def words(count: i64) -> Any: ...  # an array of slots on the stack, until the function returns
def addresses(count: i64) -> Any: ...  # the same, of addresses
def after(array: T, count: i64) -> T: ...  # the array from so many elements on
def moved(address: object, count: i64) -> ptr: ...  # so many bytes further
def address_of(place: object) -> ptr: ...  # of a field
def cast(type: type[T], address: object) -> T: ...  # the same address, or one that is a number, as another type
def copy(to: object, source: object, count: i64) -> None: ...  # bytes
