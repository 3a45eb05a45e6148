"""Where the messages of a batch are until Spark's commit log has it: with the driver, in registers, or in their log."""
