"""LLVM IR text of a SIMD kernel to SPIR-V, written here, since LLVM's back end ends its process on wide vectors."""
