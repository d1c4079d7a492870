"""Where steps run: jobs, the engine process and its transport, the same engine in this process."""
