"""Errors of connections and calls to brokers and controllers."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class NodeUnreachable(WorldError, Retryable):
    """No connection to a broker or controller came about."""

    id = "E-KAFKA-01"
    hint = "see that the process lives and that its address in the inventory is right"


class ConnectionClosed(WorldError, Retryable):
    """The other side closed the connection instead of answering."""

    id = "E-KAFKA-02"
    hint = "a stopping node does so, and so does a listener that does not serve the request or wants authentication"


class AnswerTimeout(WorldError, Retryable):
    """No answer in time; whether the request was carried out is not known."""

    id = "E-KAFKA-03"
    hint = "look at that node's log; the same command observes anew before it acts"


class AnswerBroken(WorldError):
    """What came back is not an answer that Kafka's protocol allows here."""

    id = "E-KAFKA-04"
    hint = "see that the address belongs to Apache Kafka 3.9 and to the right listener"


class AccessRefused(WorldError):
    """Authentication failed, or the principal has no right to the request."""

    id = "E-KAFKA-05"
    hint = "compare user, mechanism and rights of the inventory's access with the listener's"


class AccessUnsupported(InputError):
    """A security protocol or mechanism that this release does not speak."""

    id = "E-KAFKA-06"
    hint = "give a listener with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; SASL by PLAIN or SCRAM"


class NoActiveController(WorldError, Retryable):
    """No controller that answers says of itself that it leads the quorum."""

    id = "E-KAFKA-07"
    hint = "see that a majority of the controllers runs and has elected a leader"


class NotController(WorldError, Retryable):
    """NOT_CONTROLLER (41): the leader changed, or it is still in PRE_MIGRATION."""

    id = "E-KAFKA-08"
    hint = "find the active controller again; before the copy nobody assigns directories"


class StaleBrokerEpoch(WorldError, Retryable):
    """STALE_BROKER_EPOCH (77): the broker registered again since its epoch was read."""

    id = "E-KAFKA-09"
    hint = "read the registration again, then send"


class KafkaRefused(WorldError):
    """Kafka answered with an error that asking again does not cure."""

    id = "E-KAFKA-10"
    hint = "the error's name is Kafka's own; see the node's log for the reason"


class NotLeader(KafkaRefused):
    """A controller that was asked what only the quorum's leader may answer."""

    id = "E-KAFKA-13"
    hint = "ask the other controllers"


class OtherCluster(WorldError):
    """The controllers belong to another cluster than expected (INCONSISTENT_CLUSTER_ID, 104)."""

    id = "E-KAFKA-11"
    hint = "compare the cluster id of the inventory with the controllers' meta.properties"


class MetadataMoved(WorldError, Retryable):
    """Leader, epoch or snapshot changed under a read of the metadata log: asked again from what is kept."""

    id = "E-KAFKA-12"
    hint = "nothing to do: the read is repeated"


class MetadataBehind(WorldError, Retryable):
    """The metadata log did not reach the offset that was waited for."""

    id = "E-KAFKA-14"
    hint = "see that a majority of the controllers runs: the active one writes twice a second"


class ProbeSilent(WorldError):
    """The topic that the playbook wants probed cannot be written and read back: nothing was changed."""

    id = "E-PROBE-01"
    hint = "make the topic, with rights to write and read it for broker_access; or take probes.topic out and plan anew"


class TlsRefused(WorldError):
    """No TLS session came about: one side does not accept the other's certificate, or one of them speaks no TLS."""

    id = "E-KAFKA-15"
    hint = "compare truststore, keystore and address of the inventory with the listener's certificate"


class StoreUnreadable(InputError):
    """A truststore or keystore cannot be used: missing, another format or password, no certificate or key in it."""

    id = "E-KAFKA-16"
    hint = "name the store's path, type (PEM, PKCS12, JKS) and the file of its password as they are"
