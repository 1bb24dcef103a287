"""The CPU target: instruction sets as data and the generation of LLVM IR for them."""
