"""The command line: each verb parses options, calls the library and prints."""
