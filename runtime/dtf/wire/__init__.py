"""The words that both halves and other programs share: values, contracts, messages and files. Imports nothing above."""
