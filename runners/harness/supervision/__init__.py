"""The judge's hold on the processes in which submitted code runs."""
