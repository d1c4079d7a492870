"""Where steps run: jobs, the engine process and its transport."""
