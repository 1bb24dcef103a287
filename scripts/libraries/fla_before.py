"""The same operations of an earlier flash-linear-attention, whose kernels still use block pointers throughout."""

import fla_ops
from fla_ops import NEAR as NEAR
from fla_ops import Operation

PACKAGES = ("fla-core==0.4.2", "einops==0.8.2")

AS_CUDA = "all"  # It enters `torch.cpu.device`, which torch has not.
LATER = ("parallel_attn, window", "parallel_attn, gated", "parallel_nsa", "fused_recurrent_lightning_attn")


def operations() -> dict[str, Operation]:
    """Those that it has in this form."""
    return {name: operation for name, operation in fla_ops.operations().items() if name not in LATER}
