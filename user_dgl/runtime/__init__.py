"""What a run needs of the process and the machine: device, memory, signals, files."""
