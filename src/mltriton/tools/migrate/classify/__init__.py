"""What block pointers and masked loads there are, and which form each gets."""
