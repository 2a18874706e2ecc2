//! Answers with an error in them: made from a request that was never looked at, or from an answer that said yes.

use super::blank;
use kafka_model::{Request, Response};
use kafka_types::ErrorCode;

/// What a broker answers that refuses all of `request` for one reason.
pub(super) fn refuse(request: &Request, code: ErrorCode) -> Response {
    let mut response = blank::blank(request);
    spoil(&mut response, code);
    response
}

/// The same answer with this error wherever it said yes.
pub(super) fn spoil(response: &mut Response, code: ErrorCode) {
    if let Response::Produce(produce) = response {
        produce.partitions.iter_mut().for_each(|partition| partition.base_offset = -1);
    }
    codes_mut(response, |place| {
        if !place.is_error() {
            *place = code;
        }
    });
}

/// Every error in it.
pub(super) fn codes(response: &Response, mut see: impl FnMut(ErrorCode)) {
    let mut seen = |code: ErrorCode| {
        if code.is_error() {
            see(code);
        }
    };
    match response {
        Response::ApiVersions(_) => {}
        Response::Metadata(it) => it.topics.iter().for_each(|it| seen(it.error_code)),
        Response::CreateTopics(it) => it.topics.iter().for_each(|it| seen(it.error_code)),
        Response::CreatePartitions(it) => it.topics.iter().for_each(|it| seen(it.1)),
        Response::DescribeConfigs(it) => it.topics.iter().for_each(|it| seen(it.error_code)),
        Response::Produce(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::Fetch(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::ListOffsets(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::OffsetForLeaderEpoch(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::FindCoordinator(it) => it.coordinators.iter().for_each(|it| seen(it.error_code)),
        Response::InitProducerId(it) => seen(it.error_code),
        Response::AddPartitionsToTxn(it) => it.partitions.iter().for_each(|it| seen(it.1)),
        Response::EndTxn(it) => seen(it.error_code),
        Response::JoinGroup(it) => seen(it.error_code),
        Response::SyncGroup(it) => seen(it.error_code),
        Response::Heartbeat(it) => seen(it.error_code),
        Response::LeaveGroup(it) => seen(it.error_code),
        Response::DescribeProducers(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::DescribeTransactions(it) => it.transactions.iter().for_each(|it| seen(it.error_code)),
        // Not a mirror's: nobody counts their errors.
        Response::DeleteTopics(_)
        | Response::IncrementalAlterConfigs(_)
        | Response::DeleteRecords(_)
        | Response::AddOffsetsToTxn(_)
        | Response::TxnOffsetCommit(_)
        | Response::OffsetCommit(_)
        | Response::OffsetFetch(_)
        | Response::DescribeGroups(_)
        | Response::ListGroups(_)
        | Response::DeleteGroups(_) => {}
    }
}

fn codes_mut(response: &mut Response, mut set: impl FnMut(&mut ErrorCode)) {
    match response {
        Response::Metadata(it) => it.topics.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::CreateTopics(it) => it.topics.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::CreatePartitions(it) => it.topics.iter_mut().for_each(|it| set(&mut it.1)),
        Response::DescribeConfigs(it) => it.topics.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::Produce(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::Fetch(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::ListOffsets(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::OffsetForLeaderEpoch(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::FindCoordinator(it) => it.coordinators.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::InitProducerId(it) => set(&mut it.error_code),
        Response::AddPartitionsToTxn(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.1)),
        Response::EndTxn(it) => set(&mut it.error_code),
        Response::JoinGroup(it) => set(&mut it.error_code),
        Response::SyncGroup(it) => set(&mut it.error_code),
        Response::Heartbeat(it) => set(&mut it.error_code),
        Response::LeaveGroup(it) => set(&mut it.error_code),
        Response::DescribeProducers(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::DescribeTransactions(it) => {
            it.transactions.iter_mut().for_each(|it| set(&mut it.error_code))
        }
        Response::ApiVersions(_)
        | Response::DeleteTopics(_)
        | Response::IncrementalAlterConfigs(_)
        | Response::DeleteRecords(_)
        | Response::AddOffsetsToTxn(_)
        | Response::TxnOffsetCommit(_)
        | Response::OffsetCommit(_)
        | Response::OffsetFetch(_)
        | Response::DescribeGroups(_)
        | Response::ListGroups(_)
        | Response::DeleteGroups(_) => unreachable!("no error is made up for it"),
    }
}
