"""Models as ONNX graphs: captured by torch.export, their weights and inputs in the form that a plan gives them."""
