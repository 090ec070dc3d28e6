"""Who asks: keys, players' tokens, signed requests, and the trail of who did what."""
