"""Logits of many entries, a row at a time in one walk: their exponentials, their code, how far two rows lie apart."""
