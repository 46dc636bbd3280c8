"""The program of a model: variables, guarded commands, expressions and what they mean."""
