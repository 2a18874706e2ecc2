//! What a source consumer's errors say of a partition.

use crate::ffi::{ClientError, Code, describe};
use kafka_types::SourceOffset;
use verbatim_core::event::SourceStop;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// No error: all that a reader may see below this offset has been handed out.
    End(SourceOffset),
    /// The position is outside the log; its ends are still to be asked for.
    OutOfRange,
    Stop(SourceStop),
    /// librdkafka goes on by itself.
    Passing,
}

/// Reads an error that concerns one partition. `offset` is the error's own, negative where it has none;
/// `position` is where reading stood.
pub(super) fn hear(error: &ClientError, offset: i64, position: SourceOffset) -> Heard {
    let place = (0 <= offset).then_some(SourceOffset(offset));
    match error.code {
        Code::RD_KAFKA_RESP_ERR__PARTITION_EOF => place.map_or(Heard::Passing, Heard::End),
        // auto.offset.reset=error turns both reasons into one code; only the text still tells them apart.
        Code::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET | Code::RD_KAFKA_RESP_ERR__LOG_TRUNCATION => {
            match error.text.contains(&describe(Code::RD_KAFKA_RESP_ERR__LOG_TRUNCATION)) {
                true => {
                    Heard::Stop(SourceStop::Truncated { position, diverges_at: end_offset_in(&error.text) })
                }
                false => Heard::OutOfRange,
            }
        }
        Code::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE => Heard::OutOfRange,
        Code::RD_KAFKA_RESP_ERR__BAD_MSG
        | Code::RD_KAFKA_RESP_ERR__BAD_COMPRESSION
        | Code::RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED
        | Code::RD_KAFKA_RESP_ERR__UNDERFLOW
        | Code::RD_KAFKA_RESP_ERR_INVALID_MSG
        | Code::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE
        | Code::RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE => {
            Heard::Stop(SourceStop::Unreadable { offset: place, why: error.to_string() })
        }
        Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED => Heard::Stop(SourceStop::NotAuthorized),
        Code::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
        | Code::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION
        | Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART => Heard::Stop(SourceStop::Gone),
        _ => Heard::Passing,
    }
}

/// The end of the epoch in librdkafka's message on truncation, which is the only place that has it.
fn end_offset_in(text: &str) -> Option<SourceOffset> {
    let (_, rest) = text.split_once("broker end offset is ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(SourceOffset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Code as C;

    const HERE: SourceOffset = SourceOffset(50);

    fn heard(code: Code, text: &str, offset: i64) -> Heard {
        hear(&ClientError::new(code, text), offset, HERE)
    }

    #[test]
    fn an_end_has_its_offset() {
        let end = |offset| heard(C::RD_KAFKA_RESP_ERR__PARTITION_EOF, "end", offset);
        assert_eq!(end(51), Heard::End(SourceOffset(51)));
        assert_eq!(end(-1001), Heard::Passing);
    }

    /// Texts as librdkafka 2.12 writes them (rdkafka_offset.c, rdkafka_fetcher.c).
    #[test]
    fn truncation_is_told_from_out_of_range_by_the_text() {
        let reset = |text| heard(C::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, text, -1001);
        let cut = "Partition log truncation detected at offset 50 (leader epoch 3): broker end offset is 40 \
                   (offset leader epoch 2). Reset to INVALID.: Local: Partition log truncation detected (broker 1)";
        let truncated = |diverges_at| Heard::Stop(SourceStop::Truncated { position: HERE, diverges_at });
        assert_eq!(reset(cut), truncated(Some(SourceOffset(40))));
        let none = "No epoch found less or equal to offset 50 (leader epoch 3): broker end offset is -1 (offset \
                    leader epoch -1). Reset using configured policy.: Local: Partition log truncation detected \
                    (broker 1)";
        assert_eq!(reset(none), truncated(None));
        let outside = "fetch failed due to requested offset not available on the broker: Broker: Offset out of \
                       range (broker 1)";
        assert_eq!(reset(outside), Heard::OutOfRange);
    }

    #[test]
    fn the_rest() {
        let unreadable = |offset| match offset {
            Heard::Stop(SourceStop::Unreadable { offset, .. }) => offset,
            other => panic!("{other:?}"),
        };
        assert_eq!(unreadable(heard(C::RD_KAFKA_RESP_ERR__BAD_MSG, "crc", 60)), Some(SourceOffset(60)));
        assert_eq!(unreadable(heard(C::RD_KAFKA_RESP_ERR__BAD_COMPRESSION, "zip", -1001)), None);
        for (code, expected) in [
            (C::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, Heard::Stop(SourceStop::NotAuthorized)),
            (C::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, Heard::Stop(SourceStop::Gone)),
            (C::RD_KAFKA_RESP_ERR__TRANSPORT, Heard::Passing),
            (C::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, Heard::Passing),
            (C::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, Heard::Passing),
        ] {
            assert_eq!(heard(code, "", -1001), expected, "{code:?}");
        }
    }
}
