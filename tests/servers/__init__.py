"""Real servers for tests: started as children of the test run, ended by pid, gone with their folders afterwards."""
