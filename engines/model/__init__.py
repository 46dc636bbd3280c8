"""Models, results and the user's wishes, as arrays and words."""
