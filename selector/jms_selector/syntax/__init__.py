"""Text -> tree: the grammar, literals, LIKE patterns and dialects. This package evaluates nothing."""
