"""What all methods under an authorised expert share: feature loss, scheduler, calibration."""
