"""What would a statement of Spark read, and which conditions of a query did nobody write?

In come plans, as JSON and DataFrames that nobody has run; out go explanations.
"""
