"""What decides: tables of facts and records, and the plans that must follow from them."""
