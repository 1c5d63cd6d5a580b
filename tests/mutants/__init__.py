"""Small mistakes put into the modules that decide; a test has to notice each."""
