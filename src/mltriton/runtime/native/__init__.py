"""Running object code on this machine's CPU: loading, the thread pool, and the launchers Python calls.

Level: runtime. `objects` links object files, `params` says what a kernel was specialised for, `launcher` makes the
callable. `pool` and the machine code of sources/ and ir/ run the programs of a grid; `portable` does all that in plain
Python. Nothing is imported here, so that importing one part costs one part.
"""
