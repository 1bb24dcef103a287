"""Emission functions that targets with LLVM share: of scalars and vectors of elements, whatever a block is made of.

`context.py` is the emitter that a target extends; the other files have tables of rules, one for each dialect.
"""
