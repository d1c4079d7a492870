"""From CUDA sources to loadable images: NVRTC, caches, what a kernel takes of a multiprocessor."""
