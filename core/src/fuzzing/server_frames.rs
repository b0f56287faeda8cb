//! Frames that a server may send, in any order, between commands that an application may give.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use super::server_bytes::HANDSHAKE;
use crate::connection::model::StrictServer;
use crate::connection::{
    ChannelId, CommandError, Connection, ConnectionConfig, ConsumeOptions, Credentials, Event, ReadOutcome,
    SendBuf,
};
use crate::message::{Message, Properties};
use crate::table::Table;
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::QueueDeclaration;
use crate::wire::script::{self, Done};

/// The limits of the connection, small so that they are reached.
const FRAME_MAX: u32 = 8_192;
const MAX_UNSENT: usize = 32 * 1024;
const MAX_UNCONFIRMED: usize = 20;
const CHANNELS: usize = 3;
/// More bytes than any step can queue that publishes nothing.
const STEP: usize = 100;
/// More calls than the bytes can ask for is a busy loop.
const MAX_READS: usize = 100_000;

/// Steps of three characters each, spaces and lines between them as one likes: what happens, a channel (a digit) and
/// a number (a character, `0` is 0, `1` is 1, ..., `A` is 17, ...).
///
/// | step | the application |
/// |---|---|
/// | `o` `l` | opens a channel, closes one |
/// | `s` `x` `y` `z` | selects confirms, selects transactions, commits, rolls back |
/// | `d` `c` `q` `k` | declares a queue, consumes, consumes without acknowledgement, cancels |
/// | `p` `g` `r` | publishes so many times 300 bytes, gets (an odd number: without acknowledgement), recovers |
/// | `a` `m` `n` `j` | acknowledges a tag, all up to a tag, gives back, rejects |
/// | `!` | closes the connection |
///
/// | step | the server |
/// |---|---|
/// | `O` `I` `L` `J` | open-ok, close-ok, close, flow |
/// | `S` `X` `Y` `Z` `P` `R` | the answers to a select, a commit, a rollback, a declare, a recover |
/// | `C` `Q` `K` `V` | consume-ok of both kinds, cancel-ok, cancel |
/// | `D` `W` `G` `F` | a delivery of so many times 300 bytes, one without acknowledgement, get-ok with its message, get-empty |
/// | `E` `H` `B` | a delivery without its content, a header, a body |
/// | `M` `U` `N` `T` | confirms a tag, all up to it, refuses it, returns it |
/// | `#` `$` `%` `&` | blocked or not, close, close-ok, a heartbeat |
///
/// | step | |
/// |---|---|
/// | `.` | the client is polled, with room for so many times 100 bytes |
/// | `~` | from now on reads end after so many bytes (0: whole steps) |
/// | `t` | time passes until the next deadline |
///
/// # Panics
///
/// Where an event comes twice or out of order, a publish has no verdict or two, something is settled twice, a buffer
/// outgrows its limit, or a frame is sent that a strict server would not take.
pub fn body(bytes: &[u8]) {
    let mut session = Session::new();
    let steps: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    for step in steps.chunks_exact(3) {
        let channel = 1 + u16::from(step[1].wrapping_sub(b'1') % 4);
        session.step(step[0], channel, step[2].wrapping_sub(b'0') % 80);
    }
    session.end();
}

struct Session {
    client: Connection,
    now: Instant,
    server: StrictServer,
    application: Application,
    input: BytesMut,
    /// What the server sent and the network keeps.
    travelling: VecDeque<u8>,
    piece: usize,
    steps: usize,
}

/// What the application knows, and what the server's frames stand for.
#[derive(Default)]
struct Application {
    open: BTreeSet<u16>,
    /// Publishes without a verdict.
    waiting: BTreeSet<(u16, u64)>,
    /// Deliveries in hand.
    in_hand: BTreeSet<(u16, u64)>,
    acknowledged: BTreeSet<(u16, u64)>,
    /// Settled since the last commit, where there are commits.
    transactions: BTreeMap<u16, Vec<u64>>,
    recovering: BTreeMap<u16, usize>,
    /// The gets that are not answered: whether they are without acknowledgement.
    gets: BTreeMap<u16, VecDeque<bool>>,
    /// Channels with the consumer that does not acknowledge.
    quiet: BTreeSet<u16>,
    last_tag: BTreeMap<u16, u64>,
    is_closed: bool,
}

impl Session {
    fn new() -> Self {
        let now = Instant::from_origin(Duration::from_secs(1_000));
        let mut config = ConnectionConfig::new(Credentials::default());
        (config.frame_max, config.channel_max) = (FRAME_MAX, 3);
        (config.max_unsent_bytes, config.max_unconfirmed) = (MAX_UNSENT, MAX_UNCONFIRMED);
        config.max_message_bytes = 20_000;
        let mut client = Connection::new(config, now);
        let mut input = BytesMut::new();
        for step in HANDSHAKE {
            input.extend_from_slice(step);
            let _ = client.handle_read(now, &mut input);
        }
        client.poll_transmit(now, &mut SendBuf::default());
        assert!(matches!(client.poll_event(), Some(Event::Opened { .. })));
        let (server, application) = (StrictServer::default(), Application::default());
        Self { client, now, server, application, input, travelling: VecDeque::new(), piece: 0, steps: 0 }
    }

    fn step(&mut self, what: u8, channel: u16, number: u8) {
        self.steps += 1;
        match what {
            b'.' => self.poll(usize::from(number) * 100),
            b'~' => self.piece = number.into(),
            b't' => {
                self.now = self.client.poll_timeout().unwrap_or(self.now).max(self.now);
                self.client.handle_timeout(self.now);
            }
            b'a'..=b'z' | b'!' => {
                let id = ChannelId::new(channel).expect("channels begin at 1");
                self.command(what, id, number);
            }
            _ => {
                let frames = self.frames(what, channel, number);
                self.travelling.extend(frames);
            }
        }
        if self.piece == 0 {
            self.read(usize::MAX);
        } else {
            self.read(self.piece);
        }
    }

    /// Gives a command. What it may not do at this point is refused, and changes nothing.
    fn command(&mut self, what: u8, id: ChannelId, number: u8) {
        let (client, known, channel) = (&mut self.client, &mut self.application, id.get());
        let queue = ShortString::from_static("q");
        match what {
            b'o' => {
                if let Ok(id) = client.open_channel() {
                    known.forget(id.get());
                    assert!(known.open.insert(id.get()), "{id} is open");
                    assert!(known.open.len() <= CHANNELS, "more channels than were agreed on");
                }
            }
            b'l' => drop(client.close_channel(id)),
            b's' => drop(client.confirm_select(id)),
            b'x' if client.tx_select(id).is_ok() => _ = known.transactions.entry(channel).or_default(),
            b'y' if client.tx_commit(id).is_ok() => drop(known.transactions.insert(channel, Vec::new())),
            b'z' if client.tx_rollback(id).is_ok() => {
                let taken_back = known.transactions.insert(channel, Vec::new()).unwrap_or_default();
                known.in_hand.extend(taken_back.into_iter().map(|tag| (channel, tag)));
            }
            b'd' => drop(client.declare_queue(id, &QueueDeclaration::durable(queue, Table::new()))),
            b'c' => drop(client.consume(id, &queue, &consumer(number), &ConsumeOptions::default())),
            b'q' => {
                let options = ConsumeOptions::without_acknowledgement();
                if client.consume(id, &queue, &ShortString::from_static("quiet"), &options).is_ok() {
                    known.quiet.insert(channel);
                }
            }
            b'k' => drop(client.cancel(id, &consumer(number))),
            b'p' => {
                let message = Message {
                    exchange: ShortString::EMPTY,
                    routing_key: queue,
                    mandatory: true,
                    properties: Properties::default(),
                    body: Bytes::from(vec![0; usize::from(number) * 300]),
                };
                if let Ok(sequence @ 1..) = client.publish(id, &message) {
                    assert!(known.waiting.insert((channel, sequence)), "a number is used twice");
                    assert!(known.waiting.len() <= CHANNELS * MAX_UNCONFIRMED);
                }
            }
            b'g' => {
                let no_ack = number % 2 == 1;
                if client.get(id, &queue, no_ack).is_ok() {
                    known.gets.entry(channel).or_default().push_back(no_ack);
                }
            }
            b'r' if client.recover(id).is_ok() => {
                known.in_hand.retain(|(on, _)| *on != channel);
                *known.recovering.entry(channel).or_default() += 1;
            }
            b'a' | b'm' | b'n' | b'j' => self.settle(what, id, number.into()),
            b'!' => client.close(self.now, 200, "bye"),
            _ => {}
        }
    }

    /// Settles, and holds the answer against what is in hand.
    fn settle(&mut self, how: u8, id: ChannelId, tag: u64) {
        let (client, known, channel) = (&mut self.client, &mut self.application, id.get());
        let is_in_hand = known.in_hand.contains(&(channel, tag)) || how == b'm' && tag == 0;
        let answer = match how {
            b'a' => client.ack(id, tag, false),
            b'm' => client.ack(id, tag, true),
            b'n' => client.nack(id, tag, false, true),
            _ => client.reject(id, tag, false),
        };
        match answer {
            Ok(()) => assert!(is_in_hand, "{tag} is settled and not in hand"),
            Err(CommandError::NotOutstanding { .. }) => assert!(!is_in_hand, "{tag} cannot be settled"),
            Err(_) => return,
        }
        let up_to = if tag == 0 { u64::MAX } else { tag };
        let covered = |(on, in_hand): &(u16, u64)| {
            *on == channel && if how == b'm' { *in_hand <= up_to } else { *in_hand == tag }
        };
        let settled: Vec<_> =
            known.in_hand.iter().copied().filter(|tag| answer.is_ok() && covered(tag)).collect();
        for delivery in settled {
            known.in_hand.remove(&delivery);
            if matches!(how, b'a' | b'm') {
                known.acknowledged.insert(delivery);
            }
            if let Some(since) = known.transactions.get_mut(&channel) {
                since.push(delivery.1);
            }
        }
    }

    /// What the server sends.
    fn frames(&mut self, what: u8, channel: u16, number: u8) -> Vec<u8> {
        if what == b'R' {
            // What a recover covers is known when it has left, so it is not answered before.
            self.poll(usize::MAX);
            if self.client.unsent_bytes() > 0 {
                return Vec::new();
            }
        }
        let known = &mut self.application;
        let size = usize::from(number) * 300;
        let message = |head: Vec<u8>| {
            let bodies = vec![7; size];
            let pieces = bodies.chunks(FRAME_MAX as usize - 8).flat_map(|piece| script::body(channel, piece));
            [head, script::header(channel, size as u64, None)].concat().into_iter().chain(pieces).collect()
        };
        let mut next_tag = || {
            let last = known.last_tag.entry(channel).or_default();
            *last += 1;
            *last
        };
        match what {
            b'O' => script::channel_open_ok(channel),
            b'I' => {
                self.server.closed(channel);
                script::channel_close_ok(channel)
            }
            b'L' => {
                self.server.closes(channel);
                script::channel_close(channel, 404, "NOT_FOUND")
            }
            b'J' => script::channel_flow(channel, number % 2 == 1),
            b'S' => script::select_ok(channel),
            b'X' => script::done(channel, Done::TxSelect),
            b'Y' => script::done(channel, Done::TxCommit),
            b'Z' => script::done(channel, Done::TxRollback),
            b'P' => script::declare_ok(channel, "q"),
            b'R' => script::done(channel, Done::Recover),
            b'C' => script::consume_ok(channel, &consumer(number)),
            b'Q' => script::consume_ok(channel, "quiet"),
            b'K' => script::cancel_ok(channel, &consumer(number)),
            b'V' => script::cancel(channel, &consumer(number), number > 3),
            b'D' | b'E' => {
                let tag = next_tag();
                self.server.delivered(channel, tag);
                let head = script::deliver(channel, &consumer(number), tag);
                if what == b'E' { head } else { message(head) }
            }
            b'W' if known.quiet.contains(&channel) => {
                let tag = next_tag();
                message(script::deliver(channel, "quiet", tag))
            }
            b'G' => {
                let tag = next_tag();
                if known.gets.get_mut(&channel).and_then(VecDeque::pop_front) == Some(false) {
                    self.server.delivered(channel, tag);
                }
                message(script::get_ok(channel, tag))
            }
            b'F' => {
                known.gets.entry(channel).or_default().pop_front();
                script::get_empty(channel)
            }
            b'H' => script::header(channel, size as u64, None),
            b'B' => script::body(channel, &vec![7; size]),
            b'M' => script::ack(channel, number.into(), false),
            b'U' => script::ack(channel, number.into(), true),
            b'N' => script::nack(channel, number.into(), false),
            b'T' => script::returned(channel, Some(number.into())),
            b'#' if number % 2 == 1 => script::blocked("disk"),
            b'#' => script::unblocked(),
            b'$' => script::connection_close(320, "CONNECTION_FORCED"),
            b'%' => script::connection_close_ok(),
            b'&' => script::heartbeat(),
            _ => Vec::new(),
        }
    }

    /// The next bytes arrive.
    fn read(&mut self, bytes: usize) {
        let arrived = bytes.min(self.travelling.len());
        self.input.extend(self.travelling.drain(..arrived));
        for _ in 0..MAX_READS {
            if self.client.handle_read(self.now, &mut self.input) == ReadOutcome::Idle {
                let limit = FRAME_MAX as usize;
                assert!(!self.client.wants_read() || self.input.len() < limit, "a whole frame is left");
                let limit = MAX_UNSENT + STEP * (1 + self.steps);
                assert!(self.client.unsent_bytes() <= limit, "{} bytes wait", self.client.unsent_bytes());
                return;
            }
        }
        unreachable!("it reads for ever");
    }

    /// Takes what the client has to send, and its events.
    fn poll(&mut self, room: usize) {
        let mut out = SendBuf::new(room);
        self.client.poll_transmit(self.now, &mut out);
        let limit = room.max(1).saturating_add(3 * FRAME_MAX as usize + 21 * 4_096);
        assert!(out.remaining() <= limit, "{} bytes leave at once", out.remaining());
        let sent = out.copy_to_bytes(out.remaining());
        let acknowledged = &self.application.acknowledged;
        self.server.read(&sent, |channel, tag| acknowledged.contains(&(channel, tag)));
        let mut events = 0;
        while let Some(event) = self.client.poll_event() {
            events += 1;
            self.application.hear(event);
        }
        assert!(events <= 1_024 + CHANNELS * (MAX_UNCONFIRMED + 1) + 3, "{events} events wait");
    }

    /// The stream ends, and everything is told.
    fn end(mut self) {
        for _ in 0..MAX_READS {
            let before = (self.travelling.len(), self.input.len());
            self.poll(usize::MAX);
            self.read(usize::MAX);
            if before == (self.travelling.len(), self.input.len()) {
                break;
            }
        }
        self.poll(usize::MAX);
        assert!(self.server.is_between_frames() || self.client.is_closed() || self.client.unsent_bytes() > 0);
        self.client.handle_eof(self.now);
        self.poll(usize::MAX);
        let known = &self.application;
        assert!(self.client.is_closed() && known.is_closed, "its end was not told");
        assert!(known.waiting.is_empty(), "without a verdict: {:?}", known.waiting);
        assert!(known.open.is_empty(), "without an end: {:?}", known.open);
        assert_eq!((self.client.poll_timeout(), self.client.unsent_bytes()), (None, 0));
    }
}

impl Application {
    fn hear(&mut self, event: Event) {
        assert!(!self.is_closed, "{event:?} after the end");
        match event {
            Event::Verdict { channel, sequence, .. } => {
                assert!(self.waiting.remove(&(channel.get(), sequence)), "{sequence} has a verdict already");
            }
            Event::ChannelClosed { channel, .. } => {
                assert!(self.open.remove(&channel.get()), "the end of {channel} is told twice");
                assert!(
                    self.waiting.iter().all(|(on, _)| *on != channel.get()),
                    "verdicts come before the end"
                );
            }
            Event::Delivery(delivery) | Event::Got { delivery, .. } => {
                let channel = delivery.channel().get();
                let comes_again = self.recovering.get(&channel).is_some_and(|count| *count > 0);
                if delivery.must_settle() && !comes_again {
                    self.in_hand.insert((channel, delivery.delivery_tag()));
                }
            }
            Event::Recovered { channel } => {
                let count = self.recovering.entry(channel.get()).or_default();
                *count = count.checked_sub(1).expect("an answer to nothing is refused");
            }
            Event::Closed(_) => self.is_closed = true,
            _ => {}
        }
    }

    /// A channel begins anew.
    fn forget(&mut self, channel: u16) {
        self.in_hand.retain(|(on, _)| *on != channel);
        self.acknowledged.retain(|(on, _)| *on != channel);
        self.transactions.remove(&channel);
        self.recovering.remove(&channel);
        self.gets.remove(&channel);
        self.quiet.remove(&channel);
        self.last_tag.remove(&channel);
    }
}

fn consumer(number: u8) -> ShortString {
    ShortString::from_static(["c0", "c1", "c2"][usize::from(number % 3)])
}
