"""Events over HTTP: the service, what it measures, and who may use it."""
