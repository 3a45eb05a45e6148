"""The delivery promise: which message may be acknowledged when. Pure; knows no protocol and no Spark."""
