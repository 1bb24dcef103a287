"""Index arithmetic: polynomials over scalars, formulas of blocks, what holds of them, and how loops change them.

Level: tt to warp. `polynomials` (sums of products of values), `formula` (a block's elements as a polynomial of their
indices, and the rules by which operations make one), `formulas` (those of a function), `inequalities` (what cannot be
negative), `motion` (what changes from element to element and from iteration to iteration of a loop).
"""
