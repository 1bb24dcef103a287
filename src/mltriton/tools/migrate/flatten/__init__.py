"""Before the rules: block pointers in tuples, parameters and returned values become what they are made of."""
