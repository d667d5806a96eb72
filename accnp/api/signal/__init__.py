"""Signals: convolutions of arrays of any rank, trends, spectra of overlapping segments."""
