"""Table and tree models: views of the state, never copies of it."""
