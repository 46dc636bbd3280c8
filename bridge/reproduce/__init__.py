"""`prism-gpu reproduce`: the tables and figures of four papers, measured again.

Where to add something: a row of a table in `instances/`, what a paper printed in `data/`, something
to be measured in `tasks/`, a table in `tables/`, a figure in `plots/`.
"""
