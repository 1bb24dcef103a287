"""A generic GPU whose values live in registers: for reading the levels of a kernel without any GPU tool chain."""
