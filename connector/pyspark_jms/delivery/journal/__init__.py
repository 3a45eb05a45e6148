"""The journal: a folder that keeps messages until their batch is done. The only files, locks and memory maps."""
