"""Methods that divide the rows into classes and publish tight labels."""
