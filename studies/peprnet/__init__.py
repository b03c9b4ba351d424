"""PEPR-Net's tables and figures in small."""
