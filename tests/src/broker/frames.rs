//! Frames off the input and onto the output (AMQP 0-9-1, 2.3.5 and 4.2.3).
//!
//! The 7-byte head is read by hand, so that size and type are judged before anything is waited for. Methods
//! are decoded and encoded with amq-protocol. The properties of a message pass through as bytes.

use amq_protocol::frame::{AMQPFrame, WriteContext, gen_frame};
use amq_protocol::protocol::{AMQPClass, parse_class};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::error::{AmqpError, Code};
use super::table;

/// What a client sends first, and what a server answers to anything else (AMQP 0-9-1, 4.2.2).
pub(super) const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";
/// The largest frame before `tune-ok` has agreed on a size.
pub(super) const HANDSHAKE_FRAME_MAX: u32 = 8192;
/// The smallest `frame_max` that a client may ask for (AMQP 0-9-1, 1.4.2.6).
pub(super) const FRAME_MIN_SIZE: u32 = 4096;

const HEAD: usize = 7;
const END: u8 = 0xCE;
/// Head and end octet.
const OVERHEAD: u32 = 8;
/// The class `basic`, the only one that carries content.
const BASIC: u16 = 60;

/// The four frame types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Method = 1,
    Header = 2,
    Body = 3,
    Heartbeat = 8,
}

/// One whole frame. The payload is a copy, so that a small message does not pin the caller's read buffer.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) channel: u16,
    pub(super) payload: Bytes,
}

/// Takes a frame off the front of `input`, or nothing while it is not whole.
pub(super) fn take_frame(input: &mut BytesMut, frame_max: u32) -> Result<Option<Frame>, AmqpError> {
    let Some(head) = input.first_chunk::<HEAD>() else { return Ok(None) };
    let kind = match head[0] {
        1 => FrameKind::Method,
        2 => FrameKind::Header,
        3 => FrameKind::Body,
        8 => FrameKind::Heartbeat,
        other => return Err(AmqpError::new(Code::FrameError, format!("unknown frame type {other}"))),
    };
    let channel = u16::from_be_bytes([head[1], head[2]]);
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    let limit = frame_max.saturating_sub(OVERHEAD);
    if size > limit {
        let detail = format!("type {}, frame too large: {size} bytes, at most {limit}", head[0]);
        return Err(AmqpError::new(Code::FrameError, detail));
    }
    let size = size as usize;
    let Some(&end) = input.get(HEAD + size) else { return Ok(None) };
    if end != END {
        return Err(AmqpError::new(Code::FrameError, format!("frame ends with {end:#04x} and not 0xce")));
    }
    let payload = Bytes::copy_from_slice(&input[HEAD..HEAD + size]);
    input.advance(HEAD + size + 1);
    Ok(Some(Frame { kind, channel, payload }))
}

/// Decodes a method, after its table was found to be no deeper than the parser can take.
pub(super) fn parse_method(payload: &[u8]) -> Result<AMQPClass, AmqpError> {
    let broken = || AmqpError::new(Code::SyntaxError, "the method cannot be decoded");
    if let Some(contents) = table_of_method(payload) {
        let depth = table::depth(contents).map_err(|_| broken())?;
        if depth > table::MAX_PARSED_DEPTH {
            let max = table::MAX_PARSED_DEPTH;
            let detail = format!("a table of the method nests {depth} deep, at most {max}");
            return Err(AmqpError::new(Code::SyntaxError, detail));
        }
    }
    match parse_class(payload) {
        Ok(([], method)) => Ok(method),
        _ => Err(broken()),
    }
}

/// The contents of the one table that a method carries. `None` where it carries none or is cut short (then
/// the parser does not reach a table either).
fn table_of_method(payload: &[u8]) -> Option<&[u8]> {
    let (ids, mut rest) = payload.split_first_chunk::<4>()?;
    let short = |high, low| u16::from_be_bytes([high, low]);
    // What stands before the table: fixed octets, short strings, and the octet of the flags.
    let (octets, strings, flags) = match (short(ids[0], ids[1]), short(ids[2], ids[3])) {
        (10, 10) => (2, 0, 0),      // connection.start, which a client must not send
        (10, 11) => (0, 0, 0),      // connection.start-ok
        (40, 10) => (2, 2, 1),      // exchange.declare
        (40, 30 | 40) => (2, 3, 1), // exchange.bind, exchange.unbind
        (50, 10) => (2, 1, 1),      // queue.declare
        (50, 20) => (2, 3, 1),      // queue.bind
        (50, 50) => (2, 3, 0),      // queue.unbind
        (60, 20) => (2, 2, 1),      // basic.consume
        _ => return None,
    };
    rest = rest.get(octets..)?;
    for _ in 0..strings {
        rest = rest.get(1 + usize::from(*rest.first()?)..)?;
    }
    rest = rest.get(flags..)?;
    let (length, contents) = rest.split_first_chunk::<4>()?;
    contents.get(..u32::from_be_bytes(*length) as usize)
}

/// Appends a method frame.
pub(super) fn put_method(out: &mut BytesMut, channel: u16, method: AMQPClass) {
    put_frame(out, &AMQPFrame::Method(channel, method));
}

/// Appends a heartbeat.
pub(super) fn put_heartbeat(out: &mut BytesMut) {
    put_frame(out, &AMQPFrame::Heartbeat);
}

fn put_frame(out: &mut BytesMut, frame: &AMQPFrame) {
    let bytes = gen_frame(frame)(WriteContext::from(Vec::new())).expect("a Vec takes every write").write;
    out.extend_from_slice(&bytes);
}

/// Appends a content header and the body in frames that the peer can take.
///
/// The header is never split (AMQP 0-9-1, 4.2.6.1 knows no way to), also where it is larger than `frame_max`.
pub(super) fn put_content(out: &mut BytesMut, channel: u16, frame_max: u32, properties: &[u8], body: &[u8]) {
    let fixed = size_of::<u16>() + size_of::<u16>() + size_of::<u64>();
    put_head(out, FrameKind::Header, channel, fixed + properties.len());
    out.put_u16(BASIC);
    out.put_u16(0); // weight, unused
    out.put_u64(body.len() as u64);
    out.extend_from_slice(properties);
    out.put_u8(END);
    let largest = frame_max.saturating_sub(OVERHEAD).max(1) as usize;
    for chunk in body.chunks(largest) {
        put_head(out, FrameKind::Body, channel, chunk.len());
        out.extend_from_slice(chunk);
        out.put_u8(END);
    }
}

fn put_head(out: &mut BytesMut, kind: FrameKind, channel: u16, size: usize) {
    out.put_u8(kind as u8);
    out.put_u16(channel);
    out.put_u32(u32::try_from(size).expect("what came in frames of 32-bit sizes goes out in such"));
}

/// A content header: the size of the body that follows, and the properties as they came.
#[derive(Debug)]
pub(super) struct ContentHeader {
    pub(super) body_size: u64,
    pub(super) properties: Bytes,
}

/// Reads the fixed part of a content header.
pub(super) fn parse_content_header(payload: &Bytes) -> Result<ContentHeader, AmqpError> {
    let broken = |detail| AmqpError::new(Code::SyntaxError, detail);
    let Some(fixed) = payload.first_chunk::<12>() else { return Err(broken("the content header is cut")) };
    if u16::from_be_bytes([fixed[0], fixed[1]]) != BASIC {
        return Err(broken("only the class basic carries content"));
    }
    let body_size = u64::from_be_bytes([
        fixed[4], fixed[5], fixed[6], fixed[7], fixed[8], fixed[9], fixed[10], fixed[11],
    ]);
    Ok(ContentHeader { body_size, properties: payload.slice(12..) })
}
