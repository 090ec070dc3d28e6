"""Fairness: what each behaviour earns under each rating system, what that costs others, and what closes the hole."""
