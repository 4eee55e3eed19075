"""What runs beside a session's work: its assessment, its capture and the dialog at its end.

Standard library and git only, since it is copied into images that know nothing of the controller;
of the rest of the package it takes the vocabulary alone.
"""
