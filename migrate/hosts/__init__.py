"""What lies on the hosts: files, log directories, processes."""
