"""What an audit is given: folders, pairs of pictures, judges, training people, specs."""
