"""Accepts submissions, stores them, sends them to runners and ranks the results."""
