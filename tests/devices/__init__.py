"""Every step on a pretend accelerator, on which any mixture of devices fails."""
