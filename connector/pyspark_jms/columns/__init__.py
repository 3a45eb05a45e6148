"""The one schema, and the Arrow tools that every protocol uses. Knows no protocol and no Spark."""
