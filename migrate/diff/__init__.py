"""Spark: views to DataFrames, differences, ledger, verdicts. The only home of pyspark, pyarrow and pandas."""
