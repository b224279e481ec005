"""Settings, the configuration they make, reloading it, and logs."""
