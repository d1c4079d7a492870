"""What long steps will take, from short trials of their own work on this machine."""
