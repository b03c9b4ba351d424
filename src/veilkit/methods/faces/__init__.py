"""What all methods on faces share: detection, alignment, pasting, hiding; and the controls on faces."""
