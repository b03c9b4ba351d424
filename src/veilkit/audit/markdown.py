def write_markdown(result): return ""
