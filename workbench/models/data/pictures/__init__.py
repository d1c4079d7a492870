"""Pictures: alone in folders and tables, and with their texts."""
