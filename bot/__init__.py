"""The program that decides: takes submissions, keeps them, ranks them and reports."""
