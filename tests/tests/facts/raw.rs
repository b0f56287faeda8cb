//! A connection of the core in a blocking loop, for one question at a time.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU16;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use leveret_core::connection::{
    ChannelClosed, ChannelId, CloseReason, Connection, ConsumeOptions, DeleteIf, Event, SendBuf, Uri, Verdict,
};
use leveret_core::message::Message;
use leveret_core::text::ShortString;
use leveret_core::time::Instant;
use leveret_core::topology::QueueDeclaration;

/// Time stands still for it: its answers come at once, and its heartbeats are far apart.
const NOW: Instant = Instant::ORIGIN;

pub(crate) struct RawClient {
    connection: Connection,
    socket: TcpStream,
    input: BytesMut,
}

impl RawClient {
    #[expect(clippy::disallowed_methods, reason = "a client of its own for the tests")]
    pub(crate) fn connect(uri: &str) -> Self {
        let uri = Uri::parse(uri).expect("a good URI");
        let socket = TcpStream::connect((uri.host(), uri.port())).expect("the broker is there");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("it can be set");
        let connection = Connection::new(uri.connection_config(), NOW);
        let mut client = Self { connection, socket, input: BytesMut::new() };
        client.until(|event| matches!(event, Event::Opened { .. }).then_some(()));
        client
    }

    pub(crate) fn declare(&mut self, queue: &QueueDeclaration) -> Result<(), CloseReason> {
        self.on_a_channel(
            |connection, channel| connection.declare_queue(channel, queue).expect("it is open"),
            |event| matches!(event, Event::QueueDeclared { .. }).then_some(()),
        )
    }

    /// How many messages are ready; `None` where there is no such queue.
    pub(crate) fn ready(&mut self, queue: &str) -> Option<u32> {
        let queue = QueueDeclaration::passive(ShortString::truncated(queue));
        let counted = self.on_a_channel(
            |connection, channel| connection.declare_queue(channel, &queue).expect("it is open"),
            |event| match event {
                Event::QueueDeclared { messages, .. } => Some(*messages),
                _ => None,
            },
        );
        counted.ok()
    }

    pub(crate) fn delete(&mut self, queue: &str) {
        let queue = ShortString::truncated(queue);
        let deleted = self.on_a_channel(
            |connection, channel| {
                connection.delete_queue(channel, &queue, DeleteIf::ALWAYS).expect("it is open");
            },
            |event| matches!(event, Event::QueueDeleted { .. }).then_some(()),
        );
        deleted.expect("deleting what is not there is no error");
    }

    pub(crate) fn publish(&mut self, message: &Message) -> Result<Verdict, CloseReason> {
        self.on_a_channel(
            |connection, channel| {
                connection.confirm_select(channel).expect("it is open");
                connection.publish(channel, message).expect("there is room");
            },
            |event| match event {
                Event::Verdict { verdict, .. } if !matches!(verdict, Verdict::Unknown(_)) => {
                    Some(verdict.clone())
                }
                _ => None,
            },
        )
    }

    /// Publishes all of them at once on one channel.
    pub(crate) fn publish_all<const N: usize>(&mut self, messages: &[Message; N]) -> Vec<Verdict> {
        let mut verdicts = BTreeMap::new();
        let all = self.on_a_channel(
            |connection, channel| {
                connection.confirm_select(channel).expect("it is open");
                for message in messages {
                    connection.publish(channel, message).expect("there is room");
                }
            },
            |event| {
                if let Event::Verdict { sequence, verdict, .. } = event {
                    verdicts.insert(*sequence, verdict.clone());
                }
                (verdicts.len() == N).then(|| verdicts.values().cloned().collect())
            },
        );
        all.expect("none of them is refused")
    }

    /// On one channel and without waiting: `count` messages, a declare that is refused, `count` messages.
    pub(crate) fn pipeline(&mut self, message: &Message, count: usize, refused: &QueueDeclaration) {
        let answer: Result<(), CloseReason> = self.on_a_channel(
            |connection, channel| {
                for _ in 0..count {
                    connection.publish(channel, message).expect("there is room");
                }
                connection.declare_queue(channel, refused).expect("it is open");
                for _ in 0..count {
                    connection.publish(channel, message).expect("there is room");
                }
            },
            |_| None,
        );
        assert_eq!(answer.map_err(|reason| reason.code), Err(406));
    }

    /// Takes so many messages in the order in which they come, and acknowledges them.
    pub(crate) fn take(&mut self, queue: &str, count: usize) -> Vec<String> {
        let queue = ShortString::truncated(queue);
        let mut taken: Vec<String> = Vec::new();
        let mut last = 0;
        let channel = self.connection.open_channel().expect("there is a channel");
        let one_by_one = NonZeroU16::MIN;
        self.connection.set_prefetch(channel, one_by_one).expect("it is open");
        self.connection
            .consume(channel, &queue, &ShortString::from_static("c"), &ConsumeOptions::default())
            .expect("it is open");
        while taken.len() < count {
            let (tag, body) = self.until(|event| match event {
                Event::Delivery(delivery) => {
                    let body =
                        String::from_utf8_lossy(delivery.content().body().expect("it is small")).into_owned();
                    Some((delivery.delivery_tag(), body))
                }
                _ => None,
            });
            assert!(tag > last, "tags grow");
            last = tag;
            taken.push(body);
            self.connection.ack(channel, tag, false).expect("it is open");
        }
        self.close(channel);
        taken
    }

    /// Gives a command on a new channel and waits for its answer, or for the channel to be closed over it.
    fn on_a_channel<T>(
        &mut self,
        command: impl FnOnce(&mut Connection, ChannelId),
        mut answer: impl FnMut(&Event) -> Option<T>,
    ) -> Result<T, CloseReason> {
        let channel = self.connection.open_channel().expect("there is a channel");
        command(&mut self.connection, channel);
        let answered = self.until(|event| match event {
            Event::ChannelClosed { cause: ChannelClosed::Peer(reason), .. } => Some(Err(reason.clone())),
            event => answer(event).map(Ok),
        });
        if answered.is_ok() {
            self.close(channel);
        }
        answered
    }

    fn close(&mut self, channel: ChannelId) {
        self.connection.close_channel(channel).expect("it is open");
        self.until(|event| matches!(event, Event::ChannelClosed { .. }).then_some(()));
    }

    /// Moves bytes until an event is the one that is waited for.
    fn until<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        loop {
            let mut out = SendBuf::default();
            while self.connection.poll_transmit(NOW, &mut out) > 0 {
                while out.has_remaining() {
                    let written = self.socket.write(out.chunk()).expect("the broker reads");
                    out.advance(written);
                }
            }
            while let Some(event) = self.connection.poll_event() {
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
            let mut block = [0; 16 * 1024];
            let length = self.socket.read(&mut block).expect("the broker answers");
            assert!(length > 0, "the broker hung up");
            self.input.extend_from_slice(&block[..length]);
            let _ = self.connection.handle_read(NOW, &mut self.input);
        }
    }
}
