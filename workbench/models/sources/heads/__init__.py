"""Networks of transformers: what they take and what they give."""
