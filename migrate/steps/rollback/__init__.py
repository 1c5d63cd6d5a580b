"""The rollback: KRaft brokers to migration mode, control back to ZooKeeper, brokers out of migration mode, proof."""
