"""Tree -> text of a dialect, or Arrow masks."""
