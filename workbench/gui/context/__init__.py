"""What panels and commands share: the document, edits of it, jobs, messages.  No widgets."""
