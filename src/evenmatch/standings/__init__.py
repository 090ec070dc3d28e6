"""Where players stand: percentile, placement, activity, division. Pure functions of numbers."""
