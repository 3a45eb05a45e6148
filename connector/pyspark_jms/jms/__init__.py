"""The words and rules of JMS 3.1. Pure."""
