"""Training of PrivacyReID: generators, discriminators, recogniser, supervision upgradation."""
