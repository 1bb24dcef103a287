"""Passes from tt to ttg and on ttg."""
