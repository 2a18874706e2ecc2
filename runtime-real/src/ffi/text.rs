//! Strings and times, to librdkafka and from it.

use super::error::ClientError;
use std::ffi::{CStr, CString, c_char, c_int};
use std::time::Duration;

/// Copies a C string; empty for null.
///
/// # Safety
/// `text` is null or points to a string that ends in NUL and lives until this returns.
pub(super) unsafe fn text_of(text: *const c_char) -> String {
    // SAFETY: by this function's contract.
    unsafe { text_or_null(text) }.unwrap_or_default()
}

/// Copies a C string; `None` for null.
///
/// # Safety
/// As for [`text_of`].
pub(super) unsafe fn text_or_null(text: *const c_char) -> Option<String> {
    // SAFETY: by this function's contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A string as librdkafka takes it. No name of Kafka's has a NUL, so one that has names nothing.
pub(super) fn c_string(text: &str) -> Result<CString, ClientError> {
    CString::new(text).map_err(|_| ClientError::invalid(format!("{text:?} contains a zero byte")))
}

/// A time-out as librdkafka takes it.
pub(super) fn milliseconds(time: Duration) -> c_int {
    c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_not_empty() {
        // SAFETY: strings that end in NUL, or null.
        unsafe {
            assert_eq!(text_or_null(std::ptr::null()), None);
            assert_eq!(text_or_null(c"".as_ptr()).as_deref(), Some(""));
            assert_eq!(text_of(c"orders".as_ptr()), "orders");
            assert_eq!(text_of(std::ptr::null()), "");
        }
    }

    #[test]
    fn a_zero_byte_is_refused_and_no_time_overflows() {
        assert!(c_string("or\0ders").is_err());
        assert_eq!(milliseconds(Duration::from_secs(2)), 2_000);
        assert_eq!(milliseconds(Duration::MAX), c_int::MAX);
    }
}
