"""What a kernel may call: mltriton.language (tl)."""
