"""When values are right: bounds, and estimates of errors."""
