"""Proofs: old and new kernels run on the same arguments."""
