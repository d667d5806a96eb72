"""Signal processing: convolutions of any rank, detrending and spectra of segments."""
