"""From the intrinsic level to LLVM IR for SPIR-V: a warp is a sub-group, a lane one of its work-items."""
