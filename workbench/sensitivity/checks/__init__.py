"""Whether predicted losses are those of the model: single layers and whole plans, measured beside them."""
