"""The reference executor: runs the levels tt to intrinsic in numpy."""
