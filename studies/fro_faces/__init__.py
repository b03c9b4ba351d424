"""FRO on faces in small: verification by pool and students."""
