"""What block pointers there are, and which form each gets."""
