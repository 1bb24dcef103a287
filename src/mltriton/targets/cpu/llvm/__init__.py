"""CPU code generation: vector math, dot micro-kernels, transposes and the emitter of LLVM IR text."""
