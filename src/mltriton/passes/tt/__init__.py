"""Passes on the tt level."""
