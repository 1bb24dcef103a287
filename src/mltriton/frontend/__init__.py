"""From a Python function's source to the tt level."""
