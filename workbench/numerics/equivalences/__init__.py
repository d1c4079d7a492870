"""Rewrites that leave the floating-point function as it is: AWQ, SmoothQuant, rotation, folding, equalization."""
