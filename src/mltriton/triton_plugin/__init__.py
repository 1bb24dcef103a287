"""mltriton as a backend of the real Triton (3.7 to 3.9): the entry point `triton.backends` gives this package's name.

Level: user. Upstream's front end runs and writes its program; `compiler.py` compiles that for this machine's CPU and
`driver.py` launches it. It is the active backend where no GPU is, or where `TRITON_DEFAULT_BACKEND=cpu` asks for it.
"""
