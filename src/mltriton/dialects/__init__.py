"""The dialects: operation classes by the level they belong to.

Level: all. Each module declares operations with the descriptors of `ir/definition.py`; `registry.py` finds a class by
its name.
"""
