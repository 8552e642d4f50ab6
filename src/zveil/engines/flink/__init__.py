"""A job of Apache Flink that keeps a policy: an operator in Java, launched from here."""
