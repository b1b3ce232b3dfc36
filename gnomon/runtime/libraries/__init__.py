"""Work that libraries do as a whole: matrix products by BLAS and oneDNN and what builds on them."""
