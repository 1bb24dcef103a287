"""What the arguments of a kernel are, from its text alone, and numbers to run it with: for `verify` and for proofs."""
