"""Functions that all readers share: files, text, node ids, matrices and pickles."""
