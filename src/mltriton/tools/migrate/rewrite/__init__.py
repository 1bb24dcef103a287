"""New text: forms in the place of block pointers; before, helpers and tuples taken apart; after, repeats taken out."""
