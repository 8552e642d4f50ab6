"""Durable state: what was seen, and where input and output stand, saved as one."""
