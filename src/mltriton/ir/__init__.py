"""The IR core: types, attributes, operations, builder, text, verifier, rewriting, what a pass is.

Level: all. A small SSA core with MLIR's text (docs/architecture.md, section "The IR").
"""
