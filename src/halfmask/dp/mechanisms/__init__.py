"""Mechanisms, one file each; every one states its variance, bias and cost before use."""
