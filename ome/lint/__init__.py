"""What the API accepts and what hurts later."""
