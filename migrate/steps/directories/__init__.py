"""Steps that give a KRaft cluster's brokers more log directories, and take them away again."""
