"""One file a question: what it asks of the graph, and which systems it solves."""
