"""What the command line offers, as library functions: ahead-of-time compile, opt, verify, layout, migrate, demo."""
