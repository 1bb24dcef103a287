"""From the intrinsic level to LLVM IR: the emission functions that only the CPU has.

`kernel.py` builds the exported function; `context.py` holds what the emission functions share; `rules.py` is the table.
"""
