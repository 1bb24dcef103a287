"""LLVM IR text of a vector program to SPIR-V, written here, since LLVM's back end ends its process on wide vectors."""
