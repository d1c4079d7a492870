"""The printable report and the pictures in it."""
