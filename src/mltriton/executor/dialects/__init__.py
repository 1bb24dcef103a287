"""How each operation runs: tables from its class to the function that makes it ready, one file a dialect.

Level: tt to intrinsic. `table.py` of the parent package gathers them; `code.py` says what a maker is.
"""
