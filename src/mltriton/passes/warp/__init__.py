"""Passes from ttg to warp and on warp."""
