"""The API of the CUDA Evaluation Server, for its own client; see this folder's README."""
