"""What several studies share: cells, parts, measures, tables, figures."""
