"""What surrounds the panels: actions, menus, dialogs, forms, settings, theme, status bar, help."""
