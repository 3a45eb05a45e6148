"""A read whose tasks receive: which step follows which at the register of a reader, without I/O and clock."""
