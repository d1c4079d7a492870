"""Linear layers on the CPU through the libraries that run them."""
