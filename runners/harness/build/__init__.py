"""From a submission's source to something that can be called."""
