//! The connection against a scripted server, in virtual time.

mod allocations;
mod bytes;
mod closing;
mod consuming;
mod handshake;
mod hostile;
mod methods;
mod oversized;
mod publishing;
mod settling;
mod time;

use std::sync::Arc;
use std::time::Duration;

use ::bytes::{Buf, Bytes, BytesMut};

use super::*;
use crate::message::{Message, Properties};
use crate::text::ShortString;
use crate::wire::script;

/// A client, and what a server and a clock do to it.
struct Pair {
    client: Connection,
    now: Instant,
    /// What the client was sent and has not taken.
    input: BytesMut,
}

impl Pair {
    /// A client that has sent nothing yet.
    fn new(config: ConnectionConfig) -> Self {
        // Not at the origin, so that a deadline before now is a time as well.
        let now = Instant::from_origin(Duration::from_secs(1_000_000));
        Self { client: Connection::new(config, now), now, input: BytesMut::new() }
    }

    /// A client after its handshake, with no events left.
    fn open(config: ConnectionConfig) -> Self {
        let mut pair = Self::new(config);
        pair.shake_hands();
        assert!(matches!(pair.events()[..], [Event::Opened { .. }]));
        pair
    }

    /// Runs the handshake.
    fn shake_hands(&mut self) {
        self.sent();
        self.feed(script::start("AMQPLAIN PLAIN"));
        self.sent();
        self.feed(script::tune(2047, 131_072, 60));
        self.sent();
        self.feed(script::open_ok());
    }

    /// A client with some channels in confirm mode, all of it answered and told.
    fn confirming(channels: u16, config: ConnectionConfig) -> Self {
        let mut pair = Self::open(config);
        for number in 1..=channels {
            let channel = pair.client.open_channel().unwrap();
            assert_eq!(channel, id(number));
            pair.client.confirm_select(channel).unwrap();
            pair.sent();
            pair.feed(script::channel_open_ok(number));
            pair.feed(script::select_ok(number));
        }
        pair.events();
        pair
    }

    /// The server sends; the client reads as far as it will.
    fn feed(&mut self, bytes: impl AsRef<[u8]>) {
        self.input.extend_from_slice(bytes.as_ref());
        self.read();
    }

    fn read(&mut self) {
        while self.client.handle_read(self.now, &mut self.input) == ReadOutcome::More {}
    }

    /// What the client has to send.
    fn sent_bytes(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut out = SendBuf::default();
        while self.client.poll_transmit(self.now, &mut out) > 0 {
            all.extend_from_slice(&out.copy_to_bytes(out.remaining()));
        }
        all
    }

    /// What the client has to send, as lines.
    fn sent(&mut self) -> Vec<String> {
        script::describe(&self.sent_bytes())
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    /// The error of a connection that has ended, which must be the last event.
    fn end(&mut self) -> ConnectionError {
        assert!(self.client.is_closed(), "the connection goes on");
        assert_eq!(self.client.poll_timeout(), None);
        match self.events().pop() {
            Some(Event::Closed(error)) => (*error).clone(),
            other => panic!("ended with {other:?}"),
        }
    }

    /// Lets time pass without a call.
    fn pass(&mut self, duration: Duration) {
        self.now += duration;
    }

    /// Goes to the next deadline and tells the client.
    fn next_timeout(&mut self) -> TimerKind {
        let reason = self.client.timeout_reason().expect("a deadline");
        self.now = self.now.max(self.client.poll_timeout().expect("a deadline"));
        self.client.handle_timeout(self.now);
        reason
    }

    /// The server delivers empty messages with these tags, and the client takes the events.
    fn deliver(&mut self, channel: u16, tags: impl IntoIterator<Item = u64>) {
        for tag in tags {
            self.feed([script::deliver(channel, "tag", tag), script::header(channel, 0, None)].concat());
            let events = self.events();
            assert!(matches!(events[..], [Event::Delivery(_)]), "{events:?}");
        }
    }

    fn publish(&mut self, channel: u16, body: impl Into<Bytes>) -> Result<u64, PublishError> {
        self.client.publish(id(channel), &message(body))
    }
}

fn config() -> ConnectionConfig {
    ConnectionConfig::new(Credentials::new("ada", "hunter2"))
}

fn id(number: u16) -> ChannelId {
    ChannelId::new(number).unwrap()
}

fn short(text: &'static str) -> ShortString {
    ShortString::from_static(text)
}

/// A mandatory message to the queue `q`.
fn message(body: impl Into<Bytes>) -> Message {
    Message {
        exchange: ShortString::EMPTY,
        routing_key: short("q"),
        mandatory: true,
        properties: Properties::default(),
        body: body.into(),
    }
}

/// The verdicts among events, and nothing else.
fn verdicts(events: Vec<Event>) -> Vec<(u64, Verdict)> {
    events
        .into_iter()
        .map(|event| match event {
            Event::Verdict { sequence, verdict, .. } => (sequence, verdict),
            other => panic!("no verdict: {other:?}"),
        })
        .collect()
}

fn unroutable() -> Verdict {
    Verdict::Unroutable(Returned { code: 312, text: short("NO_ROUTE") })
}

fn close_reason(code: u16, text: &'static str) -> CloseReason {
    let (class_id, method_id) = (50, 10);
    CloseReason { code, text: short(text), class_id, method_id }
}
