"""The parts of the system `even`: small Gaussian filters that watch the same matches, and the mixture of their odds."""
