"""rewrite-descriptor-reduces: atomic updates through descriptors become atomic updates by pointers.

Level: tt. Takes any program and changes it in place, for targets that keep descriptors (where none are kept,
`rewrite-tensor-pointers` does the same). Guarantees: no `tt.descriptor_reduce` is left. Raises `PassError` for a
descriptor that the kernel does not make right away.
"""

from __future__ import annotations

from mltriton.dialects import tt
from mltriton.ir.module import Module
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import apply_patterns
from mltriton.passes.tt.rewrite_tensor_pointers import descriptor_reduce


class RewriteDescriptorReduces(Pass):
    """Update every element by a pointer of its own."""

    name = "rewrite-descriptor-reduces"

    def run(self, module: Module) -> Module:
        apply_patterns(module, {tt.DescriptorReduce: descriptor_reduce})
        return module
