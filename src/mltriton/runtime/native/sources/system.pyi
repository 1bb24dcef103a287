"""What the pool takes from the C library and from the machine's own file in ir/."""

from .language import elsewhere, i64, ptr

def aligned_alloc(alignment: i64, size: i64) -> ptr | None: ...
def free(memory: ptr | None) -> None: ...
def syscall(number: i64, *arguments: object) -> i64: ...
def pthread_self() -> i64: ...
@elsewhere
def relax() -> None: ...  # tells the core that this is a spin loop
@elsewhere
def ticks() -> i64: ...  # a clock that counts evenly, at whatever rate
@elsewhere
def futex_number() -> i64: ...  # Linux's number of the futex system call
@elsewhere
def sched_number() -> i64: ...  # Linux's number of sched_setattr; that of sched_getattr follows
