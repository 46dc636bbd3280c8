"""Random models, asked by every route: does the exact value lie within what is printed?"""
