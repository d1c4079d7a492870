"""What a user can ask for, one file each: its options, its function, how its result joins the session."""
