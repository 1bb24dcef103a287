"""Passes that take a program of any level."""
