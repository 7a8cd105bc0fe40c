"""A table or a release judged as a whole: what can be told about people, what it is good for."""
