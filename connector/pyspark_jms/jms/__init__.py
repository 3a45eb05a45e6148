"""The terms and rules of JMS 3.1. Pure: no I/O."""
