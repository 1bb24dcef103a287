"""Mistakes planted in the compiler, which the tests must notice: `make test-mutations`."""

from mutations import emitters, passes

MUTATIONS = (
    *passes.TT,
    *passes.WARPS,
    *passes.MEMORY,
    *emitters.LANGUAGE,
    *emitters.ANALYSES,
    *emitters.REGISTERS,
    *emitters.EMITTERS,
)
