"""Tools around tensors and modules, by topic, as in ``torch.utils``."""
