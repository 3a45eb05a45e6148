"""Tree and message -> truth value: Java's types and conversions, and the rules of each dialect."""
