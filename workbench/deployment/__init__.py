"""Leaving the workbench: exporters, and what each target runtime accepts."""
