"""The instructions of a SIMD kernel as SPIR-V, written here, since LLVM's back end ends its process on wide vectors."""
