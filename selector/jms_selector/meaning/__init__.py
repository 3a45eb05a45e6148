"""Tree and message to a truth value: Java's types and conversions, and the rules of each dialect."""
