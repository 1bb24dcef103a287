"""Reading files: their syntax, which function calls which, what is known of integers."""
