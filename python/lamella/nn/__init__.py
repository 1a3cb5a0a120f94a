"""Layers, losses, optimizers: the classes of C++ with MindSpore's arguments."""
