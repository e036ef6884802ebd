"""Programs whose figures stand in the documentation; they need a checkout and are not in the wheel."""
