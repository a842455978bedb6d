"""Services of the process and the machine: device, memory, signals, files and versions."""
