//! Frames (AMQP 0-9-1, 4.2.3): seven bytes of head, a payload, and the octet 0xCE.

use std::fmt;

use bytes::{BufMut, BytesMut};

use super::put;

/// What every connection starts with (AMQP 0-9-1, 4.2.2).
pub(crate) const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";

/// A heartbeat: no channel, no payload (AMQP 0-9-1, 4.2.7).
pub(crate) const HEARTBEAT: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, END];

/// The smallest `frame_max` that a peer may ask for (AMQP 0-9-1, `frame-min-size`).
pub(crate) const MIN_FRAME_MAX: u32 = 4096;

/// The bytes of a frame that are not payload.
pub(crate) const OVERHEAD: usize = HEAD + 1;

const HEAD: usize = 7;
const END: u8 = 0xCE;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;

/// The kinds of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Method,
    Header,
    Body,
    Heartbeat,
}

/// A frame that is there as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) channel: u16,
    /// Bytes of payload.
    payload: usize,
}

impl Frame {
    /// Bytes of the whole frame.
    pub(crate) const fn len(self) -> usize {
        self.payload + OVERHEAD
    }

    /// Where the payload is within the frame.
    pub(crate) const fn payload(self) -> std::ops::Range<usize> {
        HEAD..HEAD + self.payload
    }
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    UnknownKind { found: u8 },
    TooLarge { bytes: u64, limit: u32 },
    BadEnd { found: u8 },
}

/// Looks for a frame at the front of `input`. `None` means that more bytes are needed.
///
/// The head is judged before anything is waited for, so a peer cannot make the caller buffer more than
/// `frame_max` bytes, whatever length it claims.
pub(crate) fn peek(input: &[u8], frame_max: u32) -> Result<Option<Frame>, FrameError> {
    let Some(&kind) = input.first() else { return Ok(None) };
    let kind = match kind {
        METHOD => FrameKind::Method,
        HEADER => FrameKind::Header,
        BODY => FrameKind::Body,
        8 => FrameKind::Heartbeat,
        found => return Err(FrameError::UnknownKind { found }),
    };
    let Some((head, _)) = input.split_first_chunk::<HEAD>() else { return Ok(None) };
    let channel = u16::from_be_bytes([head[1], head[2]]);
    let payload = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    let bytes = u64::from(payload) + OVERHEAD as u64;
    if bytes > u64::from(frame_max) {
        return Err(FrameError::TooLarge { bytes, limit: frame_max });
    }
    // No truncation where `usize` has 32 bits, and none below that is supported by `bytes`.
    let payload = payload as usize;
    match input.get(HEAD + payload) {
        None => Ok(None),
        Some(&END) => Ok(Some(Frame { kind, channel, payload })),
        Some(&found) => Err(FrameError::BadEnd { found }),
    }
}

/// Writes the head of a method frame, for a payload whose length is known.
pub(crate) fn put_method_head(out: &mut BytesMut, channel: u16, payload: usize) {
    put_head(out, METHOD, channel, payload);
}

/// Writes the head of a content header frame.
pub(crate) fn put_header_head(out: &mut BytesMut, channel: u16, payload: usize) {
    put_head(out, HEADER, channel, payload);
}

/// Writes the head of a body frame.
pub(crate) fn put_body_head(out: &mut BytesMut, channel: u16, payload: usize) {
    put_head(out, BODY, channel, payload);
}

/// Writes the octet that ends every frame.
pub(crate) fn put_end(out: &mut BytesMut) {
    out.put_u8(END);
}

fn put_head(out: &mut BytesMut, kind: u8, channel: u16, payload: usize) {
    out.put_u8(kind);
    out.put_u16(channel);
    put::length(out, payload);
}

/// What the first bytes of a peer say that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Frames follow.
    Frames,
    /// Fewer than eight bytes, which may become anything.
    Undecided,
    /// It refused our protocol header with its own.
    Version(ProtocolVersion),
    /// Not AMQP at all.
    Foreign,
}

/// Tells apart what a peer may say before its first frame. Decided at eight bytes, or when no more will come,
/// so that the answer does not depend on how the bytes were cut.
pub(crate) fn opening(input: &[u8], ended: bool) -> Opening {
    match input {
        [METHOD, ..] => Opening::Frames,
        [b'A', b'M', b'Q', b'P', id, major, minor, revision, ..] => {
            Opening::Version(ProtocolVersion { id: *id, major: *major, minor: *minor, revision: *revision })
        }
        [] => Opening::Undecided,
        _ if input.len() < PROTOCOL_HEADER.len() && !ended => Opening::Undecided,
        _ => Opening::Foreign,
    }
}

/// The version that a protocol header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolVersion {
    /// 0 for AMQP 0-9-1; AMQP 1.0 uses 0, 2 (TLS) and 3 (SASL).
    pub id: u8,
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
    /// Revision.
    pub revision: u8,
}

impl ProtocolVersion {
    /// Whether it is AMQP 1.0, with or without TLS or SASL, which shares only its name and its ports with 0-9-1.
    #[must_use]
    pub const fn is_amqp_1_0(self) -> bool {
        matches!(self, Self { id: 0 | 2 | 3, major: 1, minor: 0, revision: 0 })
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AMQP {}-{}-{} (protocol id {})", self.major, self.minor, self.revision, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u32 = 4096;

    fn frame(kind: u8, channel: u16, payload: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        put_head(&mut out, kind, channel, payload.len());
        out.put_slice(payload);
        put_end(&mut out);
        out
    }

    #[test]
    fn a_frame_is_found_when_its_last_byte_is_there() {
        let bytes = frame(METHOD, 258, b"abc");
        for cut in 0..bytes.len() {
            assert_eq!(peek(&bytes[..cut], LIMIT), Ok(None), "cut at {cut}");
        }
        let found = peek(&bytes, LIMIT).unwrap().unwrap();
        assert_eq!((found.kind, found.channel, found.len()), (FrameKind::Method, 258, bytes.len()));
        assert_eq!(&bytes[found.payload()], b"abc");
    }

    #[test]
    fn a_claimed_length_is_refused_from_the_head_alone() {
        let head = [METHOD, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        let bytes = u64::from(u32::MAX) + 8;
        assert_eq!(peek(&head, LIMIT), Err(FrameError::TooLarge { bytes, limit: LIMIT }));
    }

    #[test]
    fn the_limit_counts_the_whole_frame() {
        assert!(peek(&frame(BODY, 1, &[0; 4088]), LIMIT).unwrap().is_some());
        assert_eq!(
            peek(&frame(BODY, 1, &[0; 4089]), LIMIT),
            Err(FrameError::TooLarge { bytes: 4097, limit: LIMIT })
        );
    }

    #[test]
    fn an_unknown_kind_and_a_wrong_end_are_named() {
        for kind in [0, 4, 7, 9, 255] {
            assert_eq!(peek(&[kind], LIMIT), Err(FrameError::UnknownKind { found: kind }));
        }
        let mut bytes = frame(METHOD, 0, b"");
        bytes[7] = 0xCF;
        assert_eq!(peek(&bytes, LIMIT), Err(FrameError::BadEnd { found: 0xCF }));
    }

    #[test]
    fn openings_are_told_apart() {
        let version = ProtocolVersion { id: 3, major: 1, minor: 0, revision: 0 };
        assert_eq!(opening(b"AMQP\x03\x01\x00\x00", false), Opening::Version(version));
        assert_eq!(opening(b"HTTP/1.1", false), Opening::Foreign);
        assert_eq!(opening(b"HTTP/1.", false), Opening::Undecided);
        assert_eq!(opening(b"\x15\x03\x03\x00\x02\x02\x46", true), Opening::Foreign);
        assert_eq!(opening(b"AMQ", false), Opening::Undecided);
        assert_eq!(opening(&[METHOD], false), Opening::Frames);
        assert_eq!(opening(&[], true), Opening::Undecided);
    }
}
