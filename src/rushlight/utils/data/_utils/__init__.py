"""What a loader is made of: fetching and collating samples, workers, and the ways between processes."""
