"""The floating-point model's outputs on a data set: computed once, kept on the disk."""
