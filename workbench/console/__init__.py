"""The command line behind ``workbench.cli``: the table of commands, their results as objects and as text."""
