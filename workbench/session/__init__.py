"""The document: the session, its edits and undo stack, and the ranges in force."""
