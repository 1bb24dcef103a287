"""Analyses: facts about a program that passes ask for. Level: tt to intrinsic."""
