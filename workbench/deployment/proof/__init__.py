"""Exported files run by the runtimes that they are for, in processes of their own."""
