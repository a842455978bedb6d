"""What all readers share: files, text, ids, matrices, and pickles of others."""
