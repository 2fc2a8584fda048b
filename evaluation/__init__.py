"""CapTrack's evaluation: from response files to scores, from scores to drift.

The way of the data: responses.py -> rows.py -> scorers/ -> scoring.py -> results.py -> comparison/.
"""

# The meaning of the numbers. Raise it whenever a scorer, a statistic or a judge prompt changes a value: a
# comparison refuses results of different definitions.
DEFINITIONS_VERSION = "1"
