"""What judge and candidate exchange."""
