"""Layouts: which warp, lane and register owns which element. Level: ttg and below."""
