//! Sessions and one embedded broker in virtual time.
//!
//! A [`World`] joins any number of [`Session`]s to one [`Broker`], moves bytes between them at once and in order,
//! and jumps to the next deadline when nothing moves. No clock is asked and nothing sleeps, so a retry of hours
//! takes milliseconds, and the same seed gives the same run.
//!
//! It is also a strict driver: it keeps to the order *transmit, timeout, events*, and panics when anything spins.
//!
//! It runs no handlers, which are the adapters': here a test takes the jobs ([`World::take_jobs`]) and says what became
//! of each ([`World::settle`]). So it shows what a queue's description does, such as its retry policy, over any time;
//! for a test of an application's handlers see the [crate](crate#test-your-handlers).
//!
//! ```
//! use std::time::Duration;
//! use leveret_core::retry::RetryPolicy;
//! use leveret_core::session::Outcome;
//! use leveret_core::topology::Queue;
//! use leveret_testkit::world::{World, job};
//!
//! const HOURS: Duration = Duration::from_secs(6 * 60 * 60);
//!
//! let emails = Queue::new("emails")?.retry(RetryPolicy::fixed(2, HOURS));
//! let mut world = World::new(1);
//! let client = world.connect([emails.clone()]);
//! world.subscribe(client, &emails);
//! world.enqueue(client, &emails, job("send-email", &("ada@example.org", "Welcome")));
//! world.settle_down();
//!
//! let first = world.take_jobs(client).remove(0);
//! let fails = Outcome::Retry { delay: None, error: "the server is down".to_owned() };
//! world.settle(client, first.delivery, &fails)?;
//! world.settle_down();
//! assert_eq!(world.ready("emails.deferred.21600000"), 1);
//!
//! world.run_for(HOURS);
//! let second = world.take_jobs(client).remove(0);
//! assert_eq!(second.envelope.attempt(), 2);
//! world.settle(client, second.delivery, &fails)?;
//! world.settle_down();
//! let dead = world.broker().queue("emails.dead").ok_or("there is no such queue")?;
//! let reason = dead.messages[0].header("x-death-reason").ok_or("there is no such header")?;
//! assert_eq!(reason.as_str(), Some("attempt 2 of 2 failed: the server is down"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod stranger;

use std::time::Duration;

use bytes::Bytes;
use leveret_core::connection::{ConnectionConfig, Credentials, Verdict};
use leveret_core::envelope::{JobType, RawPayload};
use leveret_core::message::Message;
use leveret_core::session::{
    Accepted, DeliveryId, Endpoint, EnqueueError, JobDelivery, LinkId, NewJob, Outcome, Session,
    SessionConfig, SessionEvent, SettleError, SubscriptionId,
};
use leveret_core::time::Instant;
use leveret_core::topology::{Queue, QueueDeclaration};
use serde::Serialize;

use self::client::Client;
use crate::broker::{Broker, BrokerConfig, BrokerEvent, ConnectionId};
use crate::stranger::Errand;

/// Rounds in which something moved without time passing. More is a busy loop.
const MAX_ROUNDS: usize = 100_000;

/// Names one session of a [`World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId(usize);

/// Sessions and one broker in virtual time. See the [module](self) for what it is good for.
#[derive(Debug)]
pub struct World {
    now: Instant,
    broker: Broker,
    clients: Vec<Client>,
    reachable: bool,
    broker_events: Vec<BrokerEvent>,
}

impl World {
    /// A world with a broker of default configuration.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_broker(BrokerConfig::default(), seed)
    }

    /// A world with a broker of this configuration.
    #[must_use]
    pub fn with_broker(config: BrokerConfig, seed: u64) -> Self {
        let now = Instant::from_origin(Duration::from_secs(1_000));
        Self {
            now,
            broker: Broker::new(config, now, seed),
            clients: Vec::new(),
            reachable: true,
            broker_events: Vec::new(),
        }
    }

    /// The present moment.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// A configuration for this world's broker.
    #[must_use]
    pub fn config(queues: impl IntoIterator<Item = Queue>) -> SessionConfig {
        let endpoint = Endpoint::new("broker", 5672);
        let mut config = SessionConfig::new(endpoint, ConnectionConfig::new(Credentials::default()));
        config.queues = queues.into_iter().collect();
        config
    }

    /// Adds a session; it is not connected yet.
    pub fn add(&mut self, session: Session) -> ClientId {
        self.clients.push(Client::new(session));
        ClientId(self.clients.len() - 1)
    }

    /// Adds a session for `queues` and connects it.
    ///
    /// # Panics
    ///
    /// If the session does not become ready.
    pub fn connect(&mut self, queues: impl IntoIterator<Item = Queue>) -> ClientId {
        let seed = self.clients.len() as u128 + 1;
        let session = Session::new(Self::config(queues), seed).expect("the queues are described well");
        let client = self.add(session);
        let now = self.now;
        self.session(client).connect(now);
        self.settle_down();
        let ready = self.take_events(client).into_iter().any(|event| matches!(event, SessionEvent::Ready));
        assert!(ready, "the session did not become ready");
        client
    }

    /// The session, for commands. Follow them with [`World::settle_down`] or by letting time pass.
    pub fn session(&mut self, client: ClientId) -> &mut Session {
        &mut self.clients[client.0].session
    }

    /// The broker, to look at it.
    #[must_use]
    pub const fn broker(&self) -> &Broker {
        &self.broker
    }

    /// The broker, to steer it.
    pub const fn broker_mut(&mut self) -> &mut Broker {
        &mut self.broker
    }

    /// What the broker did since this was last asked.
    pub fn take_broker_events(&mut self) -> Vec<BrokerEvent> {
        std::mem::take(&mut self.broker_events)
    }

    /// What the session told since this was last asked, except for what is the driver's.
    pub fn take_events(&mut self, client: ClientId) -> Vec<SessionEvent> {
        std::mem::take(&mut self.clients[client.0].events)
    }

    /// The jobs that were delivered since this was last asked. Other events stay.
    pub fn take_jobs(&mut self, client: ClientId) -> Vec<JobDelivery> {
        let (jobs, others) = std::mem::take(&mut self.clients[client.0].events)
            .into_iter()
            .partition(|event| matches!(event, SessionEvent::Job(_)));
        self.clients[client.0].events = others;
        let jobs: Vec<SessionEvent> = jobs;
        jobs.into_iter()
            .filter_map(|event| match event {
                SessionEvent::Job(job) => Some(job),
                _ => None,
            })
            .collect()
    }

    /// Enqueues a job now.
    ///
    /// # Panics
    ///
    /// If the session does not accept it; [`World::try_enqueue`] answers instead.
    pub fn enqueue(&mut self, client: ClientId, queue: &Queue, job: NewJob) -> Accepted {
        self.try_enqueue(client, queue, job).expect("the job is accepted")
    }

    /// Enqueues a job now.
    ///
    /// # Errors
    ///
    /// What the session answers.
    pub fn try_enqueue(
        &mut self,
        client: ClientId,
        queue: &Queue,
        job: NewJob,
    ) -> Result<Accepted, EnqueueError> {
        let client = &mut self.clients[client.0];
        let (now, wall) = (client.clock(self.now), client::wall(self.now));
        client.awake(self.now).enqueue(now, wall, queue.name(), job)
    }

    /// Subscribes to a queue and waits for the broker's answer.
    ///
    /// # Panics
    ///
    /// If the session does not accept it.
    pub fn subscribe(&mut self, client: ClientId, queue: &Queue) -> SubscriptionId {
        let now = self.now;
        let id = self.session(client).subscribe(now, queue.name()).expect("the subscription is accepted");
        self.settle_down();
        id
    }

    /// Settles a delivery.
    ///
    /// # Errors
    ///
    /// What the session answers.
    pub fn settle(
        &mut self,
        client: ClientId,
        delivery: DeliveryId,
        outcome: &Outcome,
    ) -> Result<(), SettleError> {
        let now = self.now;
        self.session(client).settle(now, delivery, outcome)
    }

    /// Publishes any message as another system would, over a connection of its own.
    ///
    /// # Panics
    ///
    /// If the broker does not confirm it.
    pub fn publish(&mut self, message: &Message) {
        let verdict = stranger::run(self.now, &mut self.broker, Errand::Publish(message));
        assert_eq!(verdict, Some(Verdict::Ok), "the broker takes the message");
    }

    /// Declares a queue as another system would, over a connection of its own.
    ///
    /// # Panics
    ///
    /// If the broker refuses it.
    pub fn declare(&mut self, queue: &QueueDeclaration) {
        let answer = stranger::run(self.now, &mut self.broker, Errand::Declare(queue));
        assert_eq!(answer, Some(Verdict::Ok), "the broker takes the queue");
    }

    /// Publishes these bytes to a queue, with no properties at all.
    pub fn publish_body(&mut self, queue: &str, body: impl Into<Bytes>) {
        self.publish(&crate::stranger::bare(queue, body));
    }

    /// How many messages are ready in a queue; 0 where there is none.
    #[must_use]
    pub fn ready(&self, queue: &str) -> usize {
        self.broker.queue(queue).map_or(0, |queue| queue.ready)
    }

    /// How many messages of a queue are delivered and not settled; 0 where there is no queue.
    #[must_use]
    pub fn unacked(&self, queue: &str) -> usize {
        self.broker.queue(queue).map_or(0, |queue| queue.unacked)
    }

    /// Makes new connections fail (`false`) or succeed (`true`). Those that exist stay.
    pub const fn set_reachable(&mut self, reachable: bool) {
        self.reachable = reachable;
    }

    /// Cuts the connection of one link without a word, as a cable would.
    pub fn cut(&mut self, client: ClientId, link: LinkId) {
        if let Some(connection) = self.clients[client.0].disconnect(self.now, link) {
            self.broker.handle_eof(self.now, connection);
        }
    }

    /// The client's process dies: no frame of it is sent any more.
    pub fn kill(&mut self, client: ClientId) {
        for link in LinkId::ALL {
            if let Some(connection) = self.clients[client.0].abandon(link) {
                self.broker.handle_eof(self.now, connection);
            }
        }
        self.clients[client.0].is_dead = true;
    }

    /// Brings what a session has to say to the broker, and no answer back: what the broker is made to say after
    /// this reaches the session in one piece with those answers.
    pub fn send(&mut self, client: ClientId) {
        for link in LinkId::ALL {
            self.clients[client.0].transmit(self.now, &mut self.broker, link);
        }
    }

    /// The client's machine sleeps: its monotonic clock stands still while all else goes on, and its connections
    /// stay. Afterwards its commands are those of [`World`], which know its clock.
    pub fn sleep(&mut self, client: ClientId, duration: Duration) {
        self.settle_down();
        self.clients[client.0].is_asleep = true;
        self.run_for(duration);
        self.clients[client.0].is_asleep = false;
        self.clients[client.0].slept += duration;
    }

    /// Moves bytes until nothing moves any more, without time passing.
    ///
    /// # Panics
    ///
    /// If it never comes to rest.
    pub fn settle_down(&mut self) {
        for _ in 0..MAX_ROUNDS {
            if !self.round() {
                return;
            }
        }
        Self::fail("something moves for ever without time passing");
    }

    /// Lets time pass, deadline by deadline.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.run_until_time(end, |_| false);
    }

    /// Lets time pass until `condition` holds, at most for `limit`. Returns whether it holds.
    pub fn run_until(&mut self, limit: Duration, condition: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        self.run_until_time(end, condition)
    }

    fn run_until_time(&mut self, end: Instant, mut condition: impl FnMut(&mut Self) -> bool) -> bool {
        for _ in 0..MAX_ROUNDS {
            self.settle_down();
            if condition(self) {
                return true;
            }
            let due = self.poll_timeout().map_or(end, |due| due.min(end));
            if self.now >= end && due >= end {
                self.handle_timeout();
                self.settle_down();
                return condition(self);
            }
            // A deadline that stays in the past would make this spin: the bound above finds it.
            self.now = self.now.max(due);
            self.handle_timeout();
        }
        Self::fail("a deadline comes again and again");
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let clients = self.clients.iter().filter(|client| !client.is_dead && !client.is_asleep);
        let deadlines = clients.map(|client| client.session.poll_timeout().map(|at| at + client.slept));
        deadlines.chain([self.broker.poll_timeout()]).flatten().min()
    }

    /// A session or a broker that never rests is a fault that every test must show.
    #[expect(clippy::panic, reason = "the harness fails the test that drives it")]
    fn fail(what: &str) -> ! {
        panic!("a busy loop: {what}");
    }

    fn handle_timeout(&mut self) {
        self.broker.handle_timeout(self.now);
        for client in self.clients.iter_mut().filter(|client| !client.is_dead && !client.is_asleep) {
            let clock = client.clock(self.now);
            client.awake(self.now).handle_timeout(clock);
        }
    }

    /// One turn of everything, for a test that steps in between; [`World::settle_down`] is many. Returns whether
    /// anything moved.
    pub fn round(&mut self) -> bool {
        let mut moved = false;
        for client in self.clients.iter_mut().filter(|client| !client.is_dead) {
            moved |= client.drive(self.now, &mut self.broker, self.reachable);
        }
        while let Some(event) = self.broker.poll_event() {
            moved = true;
            if let BrokerEvent::CloseSocket { conn } = event {
                self.close_socket(conn);
            } else {
                self.broker_events.push(event);
            }
        }
        moved
    }

    fn close_socket(&mut self, connection: ConnectionId) {
        for client in self.clients.iter_mut().filter(|client| !client.is_dead) {
            client.socket_closed(self.now, &mut self.broker, connection);
        }
    }
}

/// A job of this type and payload, for [`World::enqueue`].
///
/// # Panics
///
/// If the type is empty or too long, or the payload cannot be JSON.
#[must_use]
pub fn job<T: Serialize + ?Sized>(job_type: &str, payload: &T) -> NewJob {
    let payload = RawPayload::from_serialize(payload).expect("the payload is JSON");
    NewJob::new(JobType::new(job_type).expect("a short job type"), payload)
}

/// A job of this type with an empty object as its payload, where only its way matters.
///
/// # Panics
///
/// If the type is empty or too long.
#[must_use]
pub fn raw_job(job_type: &str) -> NewJob {
    job(job_type, &serde_json::json!({}))
}
