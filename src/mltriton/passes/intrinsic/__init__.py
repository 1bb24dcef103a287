"""Passes from warp to intrinsic and on intrinsic."""
