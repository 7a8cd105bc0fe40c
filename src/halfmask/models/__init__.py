"""Privacy promises, one file each, checked on class statistics."""
