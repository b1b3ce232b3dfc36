"""What is not collected here: the recorder, which runs where the real MXNet is installed."""

collect_ignore = ["record.py"]
