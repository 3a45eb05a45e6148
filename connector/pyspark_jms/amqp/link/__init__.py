"""One AMQP connection: sockets, TLS, receiving and sending. The only folder of ``amqp`` that waits."""
