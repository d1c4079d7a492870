"""The session as an HDF5 file; the only folder that imports h5py."""
