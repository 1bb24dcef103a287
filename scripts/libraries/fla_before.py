"""The same operations of an earlier flash-linear-attention, whose kernels still use block pointers throughout."""

from fla_ops import NEAR as NEAR
from fla_ops import operations as operations

PACKAGES = ("fla-core==0.4.2", "einops==0.8.2")

AS_CUDA = tuple(operations())  # It enters `torch.cpu.device`, which torch has not.
