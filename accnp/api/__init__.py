"""What users call: arguments, promotion, broadcasting, keywords."""
