"""Files as they come: text, spreadsheets, other formats, and rows of any origin."""
