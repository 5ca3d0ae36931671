"""Rings of boards as clients of Flower: `ringpipe round` behind its message API."""
