"""Text to tree: the grammar, its literals and patterns, and what each dialect writes. Evaluates nothing."""
