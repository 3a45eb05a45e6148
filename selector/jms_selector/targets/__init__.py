"""What a selector is translated into: a text of a dialect, Arrow masks, a Spark column."""
