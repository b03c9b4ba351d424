"""Files to files: safe reading, sanitised atomic writing, keys, manifest, ledger, resume."""
