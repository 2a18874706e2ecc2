//! Kafka requests over a plain connection, for what rdkafka does not offer. One request, one answer, one connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{
    Decodable, HeaderVersion, Request, StrBytes, encode_request_header_into_buffer,
};

const TIMEOUT: Duration = Duration::from_secs(30);
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Sends a request in the given version and waits for its answer.
pub fn call<R: Request>(bootstrap: &str, version: i16, request: &R) -> Result<R::Response> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(1)
        .with_client_id(Some(StrBytes::from_static_str("verbatim-tests")));
    let mut frame = BytesMut::new();
    encode_request_header_into_buffer(&mut frame, &header)?;
    request.encode(&mut frame, version)?;
    let mut answer = exchange(bootstrap, &frame)?;
    ResponseHeader::decode(&mut answer, R::Response::header_version(version))?;
    R::Response::decode(&mut answer, version)
        .with_context(|| format!("the answer to request {} cannot be read", R::KEY))
}

/// Sends one frame, given without its length, over a new connection; the answer, again without its length.
pub fn exchange(address: &str, frame: &[u8]) -> Result<Bytes> {
    let mut stream = TcpStream::connect(address).with_context(|| format!("no connection to {address}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write_frame(&mut stream, frame)?;
    let answer = read_frame(&mut stream)?.context("the connection was closed without an answer")?;
    Ok(Bytes::from(answer))
}

/// Writes one frame with its length before it.
pub fn write_frame(stream: &mut impl Write, frame: &[u8]) -> Result<()> {
    let mut bytes = BytesMut::with_capacity(frame.len() + 4);
    bytes.put_i32(i32::try_from(frame.len())?);
    bytes.put_slice(frame);
    stream.write_all(&bytes)?;
    Ok(())
}

/// Reads one frame, without its length; `None` when the connection ends between two frames.
pub fn read_frame(stream: &mut impl Read) -> Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match stream.read(&mut length[..1])? {
        0 => return Ok(None),
        _ => stream.read_exact(&mut length[1..])?,
    }
    let length = usize::try_from((&length[..]).get_i32())?;
    ensure!(length <= FRAME_BYTES_MAX, "a frame of {length} bytes");
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame)?;
    Ok(Some(frame))
}
