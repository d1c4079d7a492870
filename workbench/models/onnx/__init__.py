"""ONNX files as models: read in a limited process, run by ONNX Runtime, their weights as parameters of a network."""
