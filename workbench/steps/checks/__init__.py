"""Steps that check what was predicted or calibrated: audits, refinement, error budgets, data quality."""
