"""What the worker measures: a module a kind of job, each with a function `measure`."""
