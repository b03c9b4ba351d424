"""PixelFade: pictures optimised into noise that one authorised expert still matches."""
