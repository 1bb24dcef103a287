"""Types of the part of llvmlite that mltriton uses."""

__version__: str
