"""Methods that divide the rows into classes and publish tight labels, one method a file."""
