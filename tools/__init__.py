"""Checks of the checkout, and what continuous integration and the fleet's tests start."""
