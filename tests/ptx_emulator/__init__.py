"""Runs PTX on the processor, so that what the compiler makes for NVIDIA's GPUs can be checked where there is none.

All threads of a program run together, instruction by instruction, as numpy arrays; programs run one after the other.
Accesses outside of the arrays passed, misaligned ones and exchanges between lanes that are not all there are errors.
Copies to shared memory arrive when they are waited for. Approximate instructions are exact here.
"""
