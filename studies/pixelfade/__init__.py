"""PixelFade's tables and figures in small."""
