"""Steps that time kernels on this machine: of a plan, of a search's candidates, over batch sizes."""
