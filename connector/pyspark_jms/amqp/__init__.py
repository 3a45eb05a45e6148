"""AMQP 1.0 (OASIS standard, 2012): wire, dialects, link, columns."""
