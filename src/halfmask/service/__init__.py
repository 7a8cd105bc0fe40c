"""The page in the browser: what the verbs do, over HTTP, for whoever holds the rows."""
