//! A peer that agrees to everything and confirms nothing.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{MemoryRuntime, Peer};

const METHOD: u8 = 1;
const FRAME_END: u8 = 0xCE;
const HEAD_BYTES: usize = 7;

/// Opens connections and channels, declares queues, closes connections; takes publishes and never says anything of
/// them. Just enough AMQP 0-9-1 to be connected to.
pub(crate) struct SilentBroker {
    peer: Peer,
    input: BytesMut,
    greeted: bool,
    published: usize,
}

impl SilentBroker {
    /// Answers the next connect.
    pub(crate) fn accept(runtime: &MemoryRuntime) -> Self {
        Self { peer: runtime.accept(), input: BytesMut::new(), greeted: false, published: 0 }
    }

    /// How many publishes it has seen.
    pub(crate) const fn published(&self) -> usize {
        self.published
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Answers what the client wrote, until it writes nothing more.
    pub(crate) fn serve(&mut self, runtime: &MemoryRuntime) {
        loop {
            runtime.run();
            self.input.unsplit(self.peer.received());
            if self.input.is_empty() {
                return;
            }
            if !self.greeted {
                assert_eq!(self.input.split_to(8), b"AMQP\0\0\x09\x01"[..]);
                self.greeted = true;
                self.answer(0, 10, 10, |start| {
                    start.put_slice(&[0, 9]);
                    start.put_u32(0); // No server properties.
                    put_long_string(start, b"PLAIN");
                    put_long_string(start, b"en_US");
                });
            }
            while let Some((kind, channel, payload)) = self.frame() {
                if kind == METHOD {
                    self.method(channel, payload);
                }
            }
        }
    }

    fn frame(&mut self) -> Option<(u8, u16, Bytes)> {
        let mut head = self.input.get(..HEAD_BYTES)?;
        let (kind, channel, size) = (head.get_u8(), head.get_u16(), head.get_u32() as usize);
        assert!(self.input.len() > HEAD_BYTES + size, "the driver writes whole frames");
        self.input.advance(HEAD_BYTES);
        let payload = self.input.split_to(size).freeze();
        assert_eq!(self.input.get_u8(), FRAME_END);
        Some((kind, channel, payload))
    }

    fn method(&mut self, channel: u16, mut payload: Bytes) {
        let method = (payload.get_u16(), payload.get_u16());
        match method {
            (10, 11) => self.answer(0, 10, 30, |tune| tune.put_slice(&[0, 100, 0, 2, 0, 0, 0, 0])),
            (10, 40) => self.answer(0, 10, 41, |open_ok| open_ok.put_u8(0)),
            (10, 50) => self.answer(0, 10, 51, |_| {}),
            (20, 10) => self.answer(channel, 20, 11, |open_ok| open_ok.put_u32(0)),
            (20, 40) => self.answer(channel, 20, 41, |_| {}),
            (85, 10) => self.answer(channel, 85, 11, |_| {}),
            (50, 10) => self.answer(channel, 50, 11, |declare_ok| {
                payload.advance(2);
                let name = payload.split_to(1 + usize::from(payload[0]));
                declare_ok.put_slice(&name);
                declare_ok.put_u64(0); // Messages and consumers.
            }),
            (60, 40) => self.published += 1,
            _ => {}
        }
    }

    fn answer(&self, channel: u16, class: u16, method: u16, arguments: impl FnOnce(&mut BytesMut)) {
        let mut payload = BytesMut::new();
        payload.put_u16(class);
        payload.put_u16(method);
        arguments(&mut payload);
        let mut frame = BytesMut::new();
        frame.put_u8(METHOD);
        frame.put_u16(channel);
        frame.put_u32(u32::try_from(payload.len()).unwrap());
        frame.put_slice(&payload);
        frame.put_u8(FRAME_END);
        self.peer.send(&frame);
    }
}

fn put_long_string(out: &mut BytesMut, text: &[u8]) {
    out.put_u32(u32::try_from(text.len()).unwrap());
    out.put_slice(text);
}
