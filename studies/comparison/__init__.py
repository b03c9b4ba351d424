"""All methods on the same people, under the same attackers."""
