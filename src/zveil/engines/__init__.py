"""Streams beyond one machine: others' engines, with the gate inside."""
