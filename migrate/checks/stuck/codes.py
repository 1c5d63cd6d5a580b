"""Every reason for which a migration stands still, under its code; in the order in which they are told.

Source of the drivers' states and lines: `KRaftMigrationDriver`, `ClusterControlManager.registerBroker` of Kafka 3.9;
what is marked *seen* was seen on 3.9.2.
"""

from __future__ import annotations

from typing import Final

from migrate.model.causes import TRIES_AGAIN
from migrate.model.findings import WaitDoc

NEVER_ALONE: Final = "nothing happens until somebody acts"
NEXT_POLL: Final = "nothing happens; after the repair the driver looks again within a minute, and continues"
AT_ONCE: Final = "nothing happens; the registration then wakes the driver, which continues at once"
QUORUM: Final = "WAIT_FOR_CONTROLLER_QUORUM"
BROKERS: Final = "WAIT_FOR_BROKERS"
INACTIVE: Final = "INACTIVE"
SYNC: Final = "SYNC_KRAFT_TO_ZK"
NOT_01: Final = "This is not S-STUCK-01: stop no controller, delete no znode, format nothing."
SYNC_AGAIN: Final = f"nothing happens; after the repair {TRIES_AGAIN}; it continues to DUAL_WRITE"
STILL_BROKERS: Final = "Still waiting for ZK brokers [N] to register with KRaft."
NOT_READY: Final = "Still waiting for all controller nodes ready to begin the migration. Not ready due to:"

DOCS: Final = (
    WaitDoc(
        "S-STUCK-01",
        "STOP: /migration is of an earlier attempt and of a higher epoch; ZooKeeper will be emptied",
        SYNC,
        "Ignoring image ... Staying in SYNC_KRAFT_TO_ZK until a newer image is loaded",
        "Fresh controllers skip the copy where /migration has an offset above 0, and write their own, empty metadata "
        "into ZooKeeper. They only wait until their epoch passes the one in the znode: every restart of a controller "
        "raises it. Then topics, SCRAM users and quotas are deleted.",
        "Stop all controllers now, and restart none of them. Keep a backup of ZooKeeper. Delete /controller where a "
        "controller holds it, then /migration; set the controllers' metadata aside, format and start them again.",
        "nothing good: the next election of a controller may start the deletion",
        "strimzi-kafka-operator #11262; the deletion was seen",
    ),
    WaitDoc(
        "S-STUCK-02",
        "STOP: /migration is of an earlier attempt; the last broker's registration will empty ZooKeeper",
        BROKERS,
        "Initial migration of ZK metadata is done. (logged before any copy)",
        "Fresh controllers skip the copy where /migration has an offset above 0. As soon as the last broker registers "
        "they write their own, empty metadata into ZooKeeper: topics, SCRAM users and quotas are deleted.",
        "Stop all controllers now, and start or restart no broker before. Keep a backup of ZooKeeper. Delete "
        "/controller where a controller holds it, then /migration; set the controllers' metadata aside, format and "
        "start them again.",
        "nothing good: the last broker's registration starts the deletion",
        "strimzi-kafka-operator #11262; seen",
    ),
    WaitDoc(
        "S-STUCK-03",
        "/migration exists without data",
        "UNINITIALIZED",
        "(none)",
        "The driver cannot parse it, and hangs without a word.",
        "Keep a backup of ZooKeeper, stop the controllers, delete the empty /migration, start them again.",
        NEVER_ALONE,
        "KAFKA-19480, fixed in 3.9.2",
    ),
    WaitDoc(
        "S-STUCK-04",
        "the metadata says that the copy was made, /migration says that it was not",
        INACTIVE,
        "KRaft controller indicates an active migration, but the ZK state does not.",
        "The controller that copied died after the copy and before its note in /migration. Every later leader refuses "
        "to continue: it is stuck for good.",
        "`kraft-migrate rollback plan PLAYBOOK --copy-again`: it stops the controllers, deletes /controller and "
        "/migration, sets the controllers' metadata aside, formats and starts them again, then restarts every broker. "
        "All topics stay.",
        NEVER_ALONE,
        "KRaftMigrationDriver; seen",
    ),
    WaitDoc(
        "S-STUCK-05",
        "the sync to ZooKeeper fails on a configuration that ZooKeeper has no place for",
        SYNC,
        "Encountered zk migration fault: Unhandled error in SyncKRaftMetadataEvent; Unknown config resource type "
        "CLIENT_METRICS",
        "A new active controller first makes ZooKeeper what KRaft is. A client-metrics configuration (KIP-714) ends "
        "that with an error each time. Meanwhile ZooKeeper is not written, and brokers in ZooKeeper mode hear of no "
        "new topic and of no new leader. " + NOT_01,
        "Note the configuration and delete it through the controllers with the command that is named (through a broker "
        "in ZooKeeper mode the tools fail). Create it again when the migration is finalized.",
        SYNC_AGAIN,
        "KRaftMigrationZkWriter.handleConfigsSnapshot; seen",
    ),
    WaitDoc(
        "S-STUCK-06",
        "the sync to ZooKeeper fails on an ACL whose resource name cannot be a znode's name",
        SYNC,
        "Encountered ZooKeeper error during event SyncKRaftMetadataEvent. Will retry.",
        "A new active controller first makes ZooKeeper what KRaft is. An ACL whose resource name contains `/`, is `.` "
        "or `..`, or has a character that ZooKeeper refuses ends that with an error each time. Meanwhile ZooKeeper is "
        "not written, and brokers in ZooKeeper mode hear of no new topic and of no new leader. " + NOT_01,
        "Note the ACL and remove it with the command that is named. Create it again when the migration is finalized.",
        SYNC_AGAIN,
        "KRaftMigrationZkWriter.handleAclsSnapshot; seen",
    ),
    WaitDoc(
        "S-STUCK-07",
        "the new active controller has not yet made ZooKeeper what KRaft is, and nothing shows why",
        SYNC,
        "Performing a full metadata sync from KRaft to ZK.",
        "A new active controller first makes ZooKeeper what KRaft is, and writes every partition again where brokers "
        "have assigned directories: that takes its time on a large cluster. Where it fails, it begins again after a "
        "pause of at most a minute, also where what stopped it was removed just now. Meanwhile brokers in ZooKeeper "
        "mode hear of no new topic and of no new leader. " + NOT_01,
        "Wait until the line `Made the following ZK writes when reconciling with KRaft state` is in the active "
        "controller's log. If the sync begins again and again, the lines `zk migration fault` and `Encountered "
        "ZooKeeper error` of that log name the reason (I-MIG-16 for more of them). Restart no broker meanwhile.",
        f"a sync that does not fail continues to DUAL_WRITE; after one that failed, {TRIES_AGAIN}",
        "KRaftMigrationDriver.SyncKRaftMetadataEvent",
    ),
    WaitDoc(
        "S-STUCK-10",
        "most controllers are stopped: the quorum has no leader",
        INACTIVE,
        "(none: there is no leader)",
        "A leader needs a majority of the voters.",
        "Start them, the migration flag in every file; where one died, its log says why.",
        "the quorum elects a leader as soon as a majority runs",
        "KIP-595",
    ),
    WaitDoc(
        "S-STUCK-11",
        "a controller runs and does not answer where it should",
        INACTIVE,
        "(none: there is no leader)",
        "It is still starting, listens elsewhere, or its port is closed to us: what we cannot reach, the others may "
        "not reach either.",
        "Compare `listeners` of its file with its address in the inventory; look at its log.",
        "a controller that is starting answers within seconds",
        "controller.quorum.voters",
    ),
    WaitDoc(
        "S-STUCK-12",
        "the controllers' files disagree on the quorum",
        INACTIVE,
        "(none: there is no leader)",
        "Each counts votes by its own list: with different lists there is no majority that all agree on.",
        "Write what the inventory gives into every file, and restart those that were wrong.",
        NEVER_ALONE,
        "QuorumConfig",
    ),
    WaitDoc(
        "S-STUCK-13",
        "the quorum has no leader, or its metadata cannot be read, and nothing shows why",
        INACTIVE,
        "(none: there is no leader)",
        "The observations do not show it: which brokers and controllers are registered is unknown as well.",
        "Look at the controllers' logs, and at the rights of the inventory's controller access.",
        "an election takes a second or two",
        "KIP-595",
    ),
    WaitDoc(
        "S-STUCK-14",
        "the quorum has a leader and nothing is committed",
        INACTIVE,
        "(none)",
        "A record counts only when a majority has it; the followers do not fetch.",
        "Start the voters that are stopped; look at the logs of the others.",
        "it continues as soon as a majority has the leader's records",
        "KIP-595: high watermark",
    ),
    WaitDoc(
        "S-STUCK-15",
        "the controllers were once started without the flag",
        INACTIVE,
        "Should not have ZK migrations enabled on a cluster that was created in KRaft mode.",
        "Their log says NONE for good: the migration never starts.",
        "Stop the controllers, set their metadata aside, put the flag into every file, format and start them again.",
        NEVER_ALONE,
        "ActivationRecordsGenerator",
    ),
    WaitDoc(
        "S-STUCK-20",
        "a controller's file lacks the migration flag",
        QUORUM,
        f"{NOT_READY}Controller N has not enabled zookeeper.metadata.migration.enable",
        "The copy begins only when every controller has registered with the flag; a leader that has once seen all of "
        "them ready does not look again, and continues without. That is worse: elected after the copy, such a "
        "controller finalizes at once.",
        "Put zookeeper.metadata.migration.enable=true into that file, then restart that controller.",
        AT_ONCE,
        "KRaftMigrationDriver; KAFKA-20960; seen",
    ),
    WaitDoc(
        "S-STUCK-21",
        "a controller was started before its file had the flag",
        QUORUM,
        f"{NOT_READY}Controller N has not enabled zookeeper.metadata.migration.enable",
        "A process keeps the configuration that it was started with. A leader that has once seen all controllers ready "
        "continues without it; elected after the copy, it finalizes at once.",
        "Restart that controller.",
        AT_ONCE,
        "RegisterControllerRecord.zkMigrationReady",
    ),
    WaitDoc(
        "S-STUCK-22",
        "a controller is stopped and has not registered with the flag",
        QUORUM,
        f"{NOT_READY}No registration found for controller N",
        "The driver waits for every voter, not for a majority.",
        "Start it; where it died, its log says why.",
        AT_ONCE,
        "KRaftMigrationDriver",
    ),
    WaitDoc(
        "S-STUCK-23",
        "a controller runs, has not registered, and does not answer",
        QUORUM,
        f"{NOT_READY}No registration found for controller N",
        "It is still starting, listens elsewhere, or its port is closed.",
        "Compare `listeners` of its file with its address in controller.quorum.voters; look at its log.",
        AT_ONCE,
        "KRaftMigrationDriver",
    ),
    WaitDoc(
        "S-STUCK-24",
        "a controller has not registered with the flag, and nothing shows why",
        QUORUM,
        f"{NOT_READY}No registration found for controller N",
        "What was looked at is as it should be, or could not be seen.",
        "Look at that controller's log for its registration.",
        AT_ONCE,
        "ControllerRegistrationManager",
    ),
    WaitDoc(
        "S-STUCK-30",
        "a broker has not been restarted into migration mode",
        BROKERS,
        f"No brokers are known to KRaft, waiting for brokers to register. - or: {STILL_BROKERS}",
        "A broker registers with the controllers only when its file has the migration flag.",
        "Roll it: `kraft-migrate plan PLAYBOOK --stage migration-mode`, then apply.",
        AT_ONCE,
        "KafkaServer.scala; seen",
    ),
    WaitDoc(
        "S-STUCK-31",
        "a broker is stopped",
        BROKERS,
        "Still waiting for ZK brokers [N] found in metadata to register with KRaft.",
        "Its replicas are assigned to it, so the copy waits for its registration.",
        "Start it; where it died, its log says why.",
        AT_ONCE,
        "KRaftMigrationDriver.areZkBrokersReadyForMigration",
    ),
    WaitDoc(
        "S-STUCK-32",
        "a broker was started before its file was changed",
        BROKERS,
        STILL_BROKERS,
        "A process keeps the configuration that it was started with.",
        "Restart that broker.",
        AT_ONCE,
        "KafkaServer.scala",
    ),
    WaitDoc(
        "S-STUCK-33",
        "a broker's file does not lead to the active controller",
        BROKERS,
        STILL_BROKERS,
        "The broker calls the active controller at the address in its own file, indefinitely; its log says 'started' "
        "all the same.",
        "Correct controller.quorum.voters or .bootstrap.servers in that file, then restart that broker.",
        AT_ONCE,
        "BrokerLifecycleManager; seen",
    ),
    WaitDoc(
        "S-STUCK-34",
        "a broker uses another protocol for the controllers' listener than they do",
        BROKERS,
        STILL_BROKERS,
        "The first name in its controller.listener.names decides, by listener.security.protocol.map, how it connects.",
        "Correct both keys in that file, then restart that broker.",
        AT_ONCE,
        "KafkaServer.scala: NodeToControllerChannelManager",
    ),
    WaitDoc(
        "S-STUCK-35",
        "the active controller does not answer where the broker calls it",
        BROKERS,
        STILL_BROKERS,
        "The address in the broker's file is the inventory's, and nothing answers there.",
        "See that the controller listens there, and that no firewall is between.",
        AT_ONCE,
        "BrokerLifecycleManager",
    ),
    WaitDoc(
        "S-STUCK-36",
        "a broker's inter.broker.protocol.version is not the controllers' metadata.version",
        BROKERS,
        STILL_BROKERS,
        "A migrating broker offers exactly its own version: the controllers refuse any other (UNSUPPORTED_VERSION, "
        "35). Below 3.7-IV2 a broker with several log directories does not start at all.",
        "Write inter.broker.protocol.version=3.9 into that file, then restart that broker.",
        AT_ONCE,
        "ClusterControlManager.registerBroker",
    ),
    WaitDoc(
        "S-STUCK-37",
        "a broker belongs to another cluster than the controllers",
        BROKERS,
        STILL_BROKERS,
        "The controllers refuse its registration (INCONSISTENT_CLUSTER_ID, 104).",
        "Where the broker is right, the controllers were formatted with a wrong id: stop them, set their metadata "
        "aside, format them with ZooKeeper's cluster id. Else the inventory names the wrong broker.",
        NEVER_ALONE,
        "ClusterControlManager.registerBroker",
    ),
    WaitDoc(
        "S-STUCK-38",
        "a broker lacks the listener on which the controllers call brokers",
        BROKERS,
        STILL_BROKERS,
        "The controllers refuse its registration (INVALID_REGISTRATION, 119).",
        "Give the controllers' files the brokers' inter.broker.listener.name, then restart the controllers one by one.",
        AT_ONCE,
        "KAFKA-16468",
    ),
    WaitDoc(
        "S-STUCK-39",
        "a broker's directory.id is registered by another broker",
        BROKERS,
        STILL_BROKERS,
        "The controllers refuse its registration (INVALID_REGISTRATION, 119): a disk was cloned.",
        "Find out whose disk it is; stop the broker with the copy, take directory.id out of that meta.properties, "
        "start it again.",
        AT_ONCE,
        "ClusterControlManager.registerBroker; seen",
    ),
    WaitDoc(
        "S-STUCK-40",
        "a broker has not registered, and nothing shows why",
        BROKERS,
        STILL_BROKERS,
        "What was looked at is as it should be, or could not be seen. A rejected broker says 'started' too, and tries "
        "for ever.",
        "Just started, it needs seconds: look again. Then look at that broker's log, at the way from its host to the "
        "controllers, and at super.users in the controllers' files: before the copy no ACL lets a broker in.",
        AT_ONCE,
        "BrokerLifecycleManager",
    ),
    WaitDoc(
        "S-STUCK-41",
        "a broker's file is of KRaft mode before the copy",
        BROKERS,
        STILL_BROKERS,
        "Before the copy the controllers refuse KRaft brokers (BROKER_ID_NOT_REGISTERED, 102).",
        "Put the file of migration mode back, then restart that broker.",
        AT_ONCE,
        "ClusterControlManager.registerBroker",
    ),
    WaitDoc(
        "S-STUCK-50",
        "replicas are assigned to a broker that does not exist",
        BROKERS,
        "Still waiting for ZK brokers [N] found in metadata to register with KRaft.",
        "Every id in any replica list must register; an id that is only left over in an assignment never will.",
        "Move those replicas to living brokers with kafka-reassign-partitions.",
        NEXT_POLL,
        "KRaftMigrationDriver.areZkBrokersReadyForMigration; seen",
    ),
    WaitDoc(
        "S-STUCK-51",
        "a topic has no topic_id in ZooKeeper",
        BROKERS,
        "Error in topic consumer. Topic was T. - NoSuchElementException: None.get",
        "The driver fails on that topic each time it looks.",
        "Where the replicas' folders carry an id, write exactly that one into the topic's znode. Else let ZooKeeper's "
        "controller move to another broker: it gives the topic a new id.",
        NEXT_POLL,
        "ZkMigrationClient.iterateTopicMetadata; seen",
    ),
    WaitDoc(
        "S-STUCK-52",
        "a znode cannot be read",
        BROKERS,
        "(depends on the znode)",
        "The driver reads the same znodes, and fails on what it cannot parse.",
        "Repair the znode (`kraft-migrate explain B-ZKN-16`).",
        NEXT_POLL,
        "ZkMigrationClient",
    ),
    WaitDoc(
        "S-STUCK-60",
        "/controller_epoch is missing",
        "BECOME_CONTROLLER",
        "Cannot register KRaft controller N as the active controller since there is no ZK controller epoch present.",
        "A KRaft controller takes /controller over by raising that number; without the znode it cannot.",
        "Restart the broker that is the controller, so that one is elected and writes it.",
        NEXT_POLL,
        "KafkaZkClient.tryRegisterKRaftControllerAsActiveController",
    ),
    WaitDoc(
        "S-STUCK-61",
        "/controller belongs to a KRaft controller of a higher epoch: the claim is refused",
        "BECOME_CONTROLLER",
        "Cannot register KRaft controller N with epoch E as the current controller register in ZK has the same or "
        "newer epoch F.",
        "The znode is persistent and was left by an earlier quorum; a controller may take it only with a higher epoch.",
        "If that quorum is gone: stop the controllers, raise /controller_epoch to at least kraftControllerEpoch, "
        "delete /controller, start the controllers again.",
        "each election raises the leader's epoch: the claim succeeds once it is above the znode's",
        "KafkaZkClient.tryRegisterKRaftControllerAsActiveController; KAFKA-20488",
    ),
    WaitDoc(
        "S-STUCK-69",
        "nothing is missing: the copy is due, or in progress",
        BROKERS,
        "(none)",
        "Everything that the driver waits for is there.",
        "Wait a minute; look at the active controller's log if it lasts.",
        "the driver looks again within a minute, and continues",
        "KRaftMigrationDriver: it looks again after 60 s at most",
    ),
    WaitDoc(
        "S-STUCK-70",
        "a KRaft broker does not report the directories of its replicas",
        "DUAL_WRITE",
        "maybeSendAssignments: sending N assignments; handleResponse: N assignments failed ... (broker's log)",
        "After its restart into KRaft mode a broker sends the directory of each replica (AssignReplicasToDirs). Its "
        "first request is refused with STALE_BROKER_EPOCH, every time, and sent again within a second: that is no "
        "stall. Until they are known, a disk that dies takes these replicas down without a failover.",
        "See that the broker reaches the active controller; `directories assign BROKER --yes` sends the same from "
        "outside. Restart no other broker before.",
        "the broker sends again indefinitely, with pauses of up to 10 s",
        "AssignmentsManager; seen with its requests held back",
    ),
)
CODES: Final = {doc.code: doc for doc in DOCS}
