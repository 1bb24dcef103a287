"""Passes, in folders by the level they work on or leave."""
