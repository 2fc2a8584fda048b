"""CapTrack's evaluation: from a response file to per-sample scores, and from those to drift against a base model.

The way of the data: responses.py -> rows.py -> scorers/ -> scoring.py -> results.py -> comparison/.
"""

# The meaning of the numbers. Raise it whenever a scorer, a statistic or a judge prompt changes a value: results of
# different definitions are refused in a comparison.
DEFINITIONS_VERSION = "1"
