"""Layouts of Intel's GPUs: encodings of the matrix engine and of block accesses, and moves of regions."""
