"""Emission functions of the Xe target: one for each operation class, in a file per dialect or kind of operation.

`kernel.py` builds the kernel; `context.py` holds what the emission functions share; `rules.py` has the tables.
"""
