"""Programs of lanes as LLVM IR text, for every GPU: one emitter over what a machine says (`machine.py`)."""
