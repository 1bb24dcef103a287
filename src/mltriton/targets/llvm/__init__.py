"""What every target that goes through LLVM shares: types and values, a writer of LLVM IR text, the tool chain."""
