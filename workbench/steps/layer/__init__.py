"""Steps that look into one layer: before and after its plan, the cost of its input's errors, its channels."""
