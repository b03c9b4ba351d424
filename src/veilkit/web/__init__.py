"""The page: `veilkit serve` lets people protect, review and audit in a browser, on their own machine.

It starts the same commands that the command line has, as processes of their own; nothing is protected here.
"""
