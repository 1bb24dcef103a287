"""SPIR-V for Xe: from LLVM IR text to checked words, and the built-in functions that become its instructions."""
