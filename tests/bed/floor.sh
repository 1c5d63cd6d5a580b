#!/bin/bash
# The same files, formats and restarts as a run's, on hosts of a bed, by ssh alone (tests/bed/floor.py).
# Told in its environment: SSH_CONFIG, HOSTS (of brokers), CONTROLLERS (id:number of its host), BROKER_UNIT, METADATA,
# JAVA and JARS.  Prints a line when it begins and at the end of each stage: its name and the time.
set -euo pipefail
sockets=$(mktemp -d /tmp/floor.XXXXXX)
options=(-F "$SSH_CONFIG" -o ConnectTimeout=10 -o ControlMaster=auto -o ControlPersist=60 -o "ControlPath=$sockets/%C")

finish() {
    for n in $(seq "$LAST_HOST"); do ssh "${options[@]}" -O exit "h$n-root" 2>/dev/null || true; done
    rm -rf "$sockets"
}
trap finish EXIT
on() { ssh "${options[@]}" "h$1-root" "set -e; $2" </dev/null; }
kafka() { "$JAVA" -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$JARS" "org.apache.kafka.tools.$1" "${@:2}" 2>/dev/null; }
port() { until (: <"/dev/tcp/kafka-$1/$2") 2>/dev/null; do sleep 0.2; done; }

whole() { # asks the other brokers: one that starts knows no topic yet
    local others=() n listed
    for n in $HOSTS; do [ "$n" = "$1" ] || others+=("kafka-$n:9091"); done
    until listed=$(kafka TopicCommand --bootstrap-server "$(IFS=,; echo "${others[*]}")" --describe \
        --under-replicated-partitions) && [ -z "$listed" ]; do sleep 0.5; done
}

quorum() { # a leader, and no voter that is more than two records behind; prints the leader
    local seen
    until seen=$(kafka MetadataQuorumCommand --bootstrap-controller "$QUORUM" describe --status) \
        && grep -qE '^LeaderId: +[0-9]' <<<"$seen" && grep -qE '^MaxFollowerLag: +[0-2]$' <<<"$seen"; do sleep 0.5; done
    sed -n 's/^LeaderId: *//p' <<<"$seen"
}

logged() { # until some controller's log has the words
    local one
    while :; do
        for one in $CONTROLLERS; do
            on "${one#*:}" "journalctl --quiet -o cat -u kafka-controller | grep -q '$1'" && return
        done
        sleep 0.5
    done
}

roll() { # each broker: its file by sed, stop, start, wait
    local n
    for n in $HOSTS; do
        on "$n" "sed -i -e '$1' /etc/kafka/server.properties; systemctl stop $BROKER_UNIT; systemctl start $BROKER_UNIT"
        port "$n" 9091
        whole "$n"
    done
}

begin_controller() { # the folder, the file, the format, the start
    local id=$1 n=$2
    on "$n" "cat >/etc/kafka/controller.properties <<END
process.roles=controller
node.id=$id
controller.quorum.voters=$VOTERS
controller.listener.names=CONTROLLER
listeners=CONTROLLER://kafka-$n:9094
listener.security.protocol.map=CLIENTS:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
log.dirs=$METADATA
zookeeper.metadata.migration.enable=true
zookeeper.connect=$ZOOKEEPER
default.replication.factor=3
num.partitions=3
min.insync.replicas=2
END
chgrp kafka /etc/kafka/controller.properties; chmod 640 /etc/kafka/controller.properties
install -d -o kafka -g kafka $METADATA
cd /; runuser -u kafka -- /opt/kafka/bin/kafka-storage.sh format --cluster-id $CLUSTER --config /etc/kafka/controller.properties >/dev/null
systemctl enable --quiet --now kafka-controller"
}

finalize_controller() {
    on "$1" "sed -i /^zookeeper/d /etc/kafka/controller.properties; systemctl stop kafka-controller; systemctl start kafka-controller"
    port "$1" 9094
    quorum >/dev/null
}

stamp() { echo "$1 $(date +%s.%N)"; }
VOTERS='' QUORUM='' LAST_HOST=0
for one in $CONTROLLERS; do
    VOTERS+="${VOTERS:+,}${one%:*}@kafka-${one#*:}:9094"
    QUORUM+="${QUORUM:+,}kafka-${one#*:}:9094"
    ((${one#*:} > LAST_HOST)) && LAST_HOST=${one#*:}
done

stamp begin
CLUSTER=$(on 1 "sed -n s/^cluster.id=//p /srv/kafka/disk1/meta.properties")
ZOOKEEPER=$(on 1 "sed -n s/^zookeeper.connect=//p /etc/kafka/server.properties")
begun=()
for one in $CONTROLLERS; do
    begin_controller "${one%:*}" "${one#*:}" &
    begun+=($!)
done
for one in "${begun[@]}"; do wait "$one"; done
quorum >/dev/null
stamp controllers
roll "s/^listener.security.protocol.map=.*/&,CONTROLLER:PLAINTEXT/
\$a zookeeper.metadata.migration.enable=true\\ncontroller.quorum.voters=$VOTERS\\ncontroller.listener.names=CONTROLLER"
stamp migration-mode
logged "to DUAL_WRITE"
stamp copy
roll "/^zookeeper/d; /^inter.broker.protocol.version/d; s/^broker.id=\\(.*\\)/node.id=\\1\\nprocess.roles=broker/"
stamp kraft-mode
leader=$(quorum)
for one in $CONTROLLERS; do [ "${one%:*}" = "$leader" ] || finalize_controller "${one#*:}"; done
for one in $CONTROLLERS; do [ "${one%:*}" != "$leader" ] || finalize_controller "${one#*:}"; done
logged POST_MIGRATION
whole 0
stamp finalize
