//! Values as people write them: durations, sizes, times.

use std::time::Duration;
use verbatim_core::time::Timestamp;

/// `500ms`, `30s`, `1h 30m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        format!("{text:?} is not a duration: write it with its unit, as in \"500ms\" or \"30s\"")
    })
}

/// `2026-11-29T10:00:00Z`, or with another offset from UTC.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    text.parse::<jiff::Timestamp>().map(|time| Timestamp(time.as_millisecond())).map_err(|_| {
        format!("{text:?} is not a time: write it as RFC 3339 does, as in \"2026-11-29T10:00:00Z\"")
    })
}

/// `512MiB`, `2GB`, or a number of bytes.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    text.parse::<bytesize::ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| format!("{text:?} is not a size: write it with its unit, as in \"512MiB\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(parse_duration("500").is_err());
        assert!(parse_duration("soon").is_err());
    }

    #[test]
    fn times_need_an_offset() {
        assert_eq!(parse_time("1970-01-01T00:00:01.5Z"), Ok(Timestamp(1500)));
        assert_eq!(parse_time("1970-01-01T01:00:00+01:00"), Ok(Timestamp(0)));
        assert!(parse_time("1970-01-01T01:00:00").is_err());
        assert!(parse_time("yesterday").is_err());
    }

    #[test]
    fn sizes_may_have_a_unit() {
        assert_eq!(parse_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(parse_bytes("1024"), Ok(1024));
        assert!(parse_bytes("much").is_err());
    }
}
