"""One chapter of masks a module; each mask is one class that declares itself."""
