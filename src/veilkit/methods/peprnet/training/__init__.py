"""Training of PEPR-Net's first stage: encoder, De-ID decoder, adversary."""
