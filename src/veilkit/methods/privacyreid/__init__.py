"""PrivacyReID: an anonymiser learned together with its decoder and a recogniser."""
