"""Datasets: sources, samplers, operations, transforms."""
