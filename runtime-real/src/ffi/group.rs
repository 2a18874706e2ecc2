//! What a group member knows about itself.

use super::text::text_or_null;
use rdkafka::bindings as rd;
use rdkafka::client::NativeClient;

/// The member id that the group's coordinator gave. Empty or absent while the client is no member: not joined
/// yet, or its request to leave is on its way.
pub(crate) fn member_id(client: &NativeClient) -> Option<String> {
    // SAFETY: the client is alive. The string is ours, is copied and then freed by its own allocator.
    unsafe {
        let id = rd::rd_kafka_memberid(client.ptr());
        let copy = text_or_null(id);
        if !id.is_null() {
            rd::rd_kafka_mem_free(client.ptr(), id.cast());
        }
        copy
    }
}
