"""Attacks in closed form, seconds each: with them an audit without time for training has verdicts, too."""
