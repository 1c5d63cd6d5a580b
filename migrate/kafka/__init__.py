"""Connections to brokers and controllers, and the calls made over them."""
