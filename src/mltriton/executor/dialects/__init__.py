"""How each operation runs, one file a dialect (two for `tt`): tables from the operation's class to the function that makes it ready.

Level: tt to intrinsic. `table.py` of the parent package gathers them; `code.py` says what a maker is.
"""
