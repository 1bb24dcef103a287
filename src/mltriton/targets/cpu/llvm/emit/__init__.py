"""From the intrinsic level to LLVM IR: one emission function for each operation class, in a file per dialect.

`kernel.py` builds the exported function; `context.py` holds what the emission functions share; `rules.py` is the table.
"""
