"""Tree -> text of a dialect, Arrow masks or Spark column."""
