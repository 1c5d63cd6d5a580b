"""Spark: views to DataFrames, differences, ledger, verdicts. The only home of pyspark and pyarrow."""
