"""Text -> tree: the grammar, literals, LIKE patterns and dialects. Evaluates nothing."""
