"""The command line: one file for each command that is more than a step, and what all commands print."""
