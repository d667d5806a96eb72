"""Passes on the loop IR. Each is a file with one public function, from kernel to kernel."""
