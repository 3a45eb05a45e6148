"""The journal: a folder that keeps messages until their batch is done. All its files, locks and memory maps."""
