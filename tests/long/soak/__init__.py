"""Hours of migrating, using, rolling back and migrating again, under load, with a fault in each part of the way."""
