"""Settings, the configuration made from them, reloading it, and logs."""
