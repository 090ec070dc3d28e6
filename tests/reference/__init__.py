"""The rating systems once more, slow and obvious, to check the compiled kernels against."""
