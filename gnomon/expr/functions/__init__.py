"""Scalar functions: what is computed of single elements, as formulas with derivatives."""
