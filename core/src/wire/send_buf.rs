//! The buffer that a caller hands in to be filled with bytes for the peer.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::SHARE_THRESHOLD;

/// Bytes on their way to the peer, in order. Owned by the caller, one per byte stream.
///
/// Filled by `poll_transmit`, emptied through [`Buf`]: write [`Buf::chunks_vectored`] to the socket and
/// [`Buf::advance`] by what it took. Small pieces are copied into one growing block; bodies of 4 KiB and more
/// are chained without a copy.
///
/// The limit is soft: nothing is *begun* at or above it. A publish is begun with its method, its header and one
/// frame of body together, so the buffer holds at most the limit and three frames, the first of them short.
pub struct SendBuf {
    /// What goes out before `tail`. None of them is empty.
    chunks: VecDeque<Bytes>,
    tail: BytesMut,
    /// Bytes in `chunks` and `tail` together.
    len: usize,
    limit: usize,
}

impl SendBuf {
    /// The limit of [`SendBuf::default`], in bytes: what a socket usually takes at once.
    pub const DEFAULT_LIMIT: usize = 64 * 1024;

    /// An empty buffer that counts as full at `limit_bytes`. 0 is taken as 1, so that it can be filled at all.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { chunks: VecDeque::new(), tail: BytesMut::new(), len: 0, limit: limit_bytes.max(1) }
    }

    /// Whether the limit is reached.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len >= self.limit
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets what was not written, for a new byte stream.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.tail.clear();
        self.len = 0;
    }

    /// Appends bytes, shared with the caller when they are many.
    pub(crate) fn put_bytes(&mut self, bytes: Bytes) {
        if bytes.len() < SHARE_THRESHOLD {
            self.put_with(|tail| tail.put_slice(&bytes));
            return;
        }
        if !self.tail.is_empty() {
            self.chunks.push_back(self.tail.split().freeze());
        }
        self.len += bytes.len();
        self.chunks.push_back(bytes);
    }

    /// Appends what `write` adds to the block it is given. It must only add.
    pub(crate) fn put_with(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.tail.len();
        write(&mut self.tail);
        debug_assert!(self.tail.len() >= before, "what is queued was cut");
        self.len += self.tail.len() - before;
    }
}

impl Default for SendBuf {
    /// A buffer of 64 KiB.
    fn default() -> Self {
        Self::new(Self::DEFAULT_LIMIT)
    }
}

impl Buf for SendBuf {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.chunks.front().map_or(&self.tail, |chunk| chunk)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let tail = (!self.tail.is_empty()).then_some(&self.tail[..]);
        let pieces = self.chunks.iter().map(|chunk| &chunk[..]).chain(tail);
        let mut filled = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    /// # Panics
    ///
    /// If `count` is more than [`Buf::remaining`], as [`Buf`] says.
    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "advanced {count} bytes over the {} that are there", self.len);
        self.len -= count;
        while let Some(front) = self.chunks.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.chunks.pop_front();
        }
        self.tail.advance(count);
    }
}

impl fmt::Debug for SendBuf {
    // The bytes may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBuf").field("bytes", &self.len).field("limit", &self.limit).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn large_pieces_are_chained_and_small_ones_copied() {
        let large = Bytes::from(vec![7; SHARE_THRESHOLD]);
        let mut out = SendBuf::default();
        out.put_bytes(Bytes::from_static(b"head"));
        out.put_bytes(Bytes::from_static(b"more"));
        out.put_bytes(large.clone());
        out.put_bytes(Bytes::from_static(b"end"));

        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(out.chunks_vectored(&mut slices), 3);
        assert_eq!(&*slices[0], b"headmore");
        assert_eq!(slices[1].as_ptr(), large.as_ptr());
        assert_eq!(&*slices[2], b"end");
    }

    #[test]
    fn it_is_full_at_its_limit_and_not_before() {
        let mut out = SendBuf::new(8);
        out.put_bytes(Bytes::from_static(b"1234567"));
        assert!(!out.is_full());
        out.put_bytes(Bytes::from_static(b"8"));
        assert!(out.is_full());
        out.advance(1);
        assert!(!out.is_full());
        out.clear();
        assert!(out.is_empty());
        assert_eq!(out.remaining(), 0);
    }

    proptest! {
        #[test]
        fn bytes_come_out_as_they_went_in(
            pieces in prop::collection::vec((any::<u8>(), 0_usize..9_000), 0..12),
            steps in prop::collection::vec(1_usize..5_000, 1..40),
        ) {
            let mut out = SendBuf::default();
            let mut expected = Vec::new();
            for (fill, size) in pieces {
                let piece = vec![fill; size];
                expected.extend_from_slice(&piece);
                out.put_bytes(piece.into());
            }
            prop_assert_eq!(out.remaining(), expected.len());
            let mut got = Vec::new();
            for step in steps.iter().cycle() {
                let chunk = out.chunk();
                if chunk.is_empty() {
                    break;
                }
                let step = (*step).min(out.remaining());
                let taken = out.copy_to_bytes(step);
                got.extend_from_slice(&taken);
            }
            prop_assert!(out.is_empty());
            prop_assert_eq!(got, expected);
        }
    }
}
