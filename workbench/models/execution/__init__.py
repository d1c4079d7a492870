"""How a network is run: with hooks, with other weights, from a layer on."""
