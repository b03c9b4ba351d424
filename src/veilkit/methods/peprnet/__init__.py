"""PEPR-Net: features for matching with less of who somebody is, and noise on them."""
