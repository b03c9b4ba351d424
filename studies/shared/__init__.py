"""What several studies share: the runner, cells and results, data, measures, tables, figures."""
