"""What the user can do: one function for each action, and the table of actions that points at them."""
