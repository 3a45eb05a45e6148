"""The options of source and sink: one table, and the parsing of its texts. No module here connects to a broker."""
