"""The command line: one verb a file; each parses options, calls the library and prints."""
