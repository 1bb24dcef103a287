"""Targets: what each supports, as data, and its lowering from the intrinsic level.

Level: all; passes only read `TargetSpec`.
"""
