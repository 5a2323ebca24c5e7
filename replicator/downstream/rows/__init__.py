"""How rows are written to a target: by LOAD DATA, by statements, in transactions with their
watermarks.
"""
