"""What the command line offers, as library functions: signature parsing, ahead-of-time compile, opt, verify, demo."""
