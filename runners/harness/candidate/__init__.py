"""The program that runs in the candidate's process together with the submission."""
