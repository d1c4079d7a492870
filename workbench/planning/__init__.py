"""Plans and what they cost: rules, totals, constraints, targets.  No torch."""
