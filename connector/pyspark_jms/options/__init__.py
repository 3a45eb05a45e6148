"""The options of source and sink: one table, and how its texts become values. Nothing connects here."""
