"""What the papers assert, as data, and whether runs support it: definitions, evidence, verdicts, plans, pages."""
