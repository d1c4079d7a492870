"""Steps that open, save and export: models and sessions as files."""
