"""What is told of a migration: notes, pages, what the hardware does with each descriptor."""
