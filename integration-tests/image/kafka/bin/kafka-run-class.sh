#!/usr/bin/env bash
# Runs one of Kafka's command-line classes with the jars of this image.
logging=-Dlog4j2.configurationFile=/etc/kafka/docker/tools-log4j2.yaml
if compgen -G '/opt/kafka/libs/reload4j-*.jar' >/dev/null; then
    logging=-Dlog4j.configuration=file:/etc/kafka/docker/tools-log4j.properties
fi
# shellcheck disable=SC2086 # options are words on purpose
exec java ${KAFKA_TOOL_HEAP_OPTS:--Xmx256M} -XX:TieredStopAtLevel=1 $logging -cp '/opt/kafka/libs/*' "$@"
