"""PrivacyReID's tables and figures in small."""
