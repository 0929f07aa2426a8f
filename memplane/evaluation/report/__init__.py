"""A report of an evaluation as a value, and what it looks like as Markdown, as HTML and as charts."""
