//! What the tests of this crate share.

mod memory;
mod silent_broker;
mod waker;

#[cfg(feature = "tls")]
pub(crate) use memory::Memory;
pub(crate) use memory::{MemoryRuntime, Peer};
pub(crate) use silent_broker::SilentBroker;
pub(crate) use waker::CountingWaker;

use std::task::Poll;

use serde::{Deserialize, Serialize};

use crate::{Client, Config, ConnectedClient, Job, Queue};

/// A job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Greet {
    pub(crate) name: String,
}

impl Job for Greet {
    const NAME: &'static str = "greet";
}

impl Greet {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

pub(crate) fn queue() -> Queue {
    Queue::new("greetings").unwrap()
}

/// Where nothing is: a [`MemoryRuntime`] decides what is found there.
pub(crate) fn config() -> Config {
    Config::from_uri("amqp://broker.test").unwrap()
}

/// A client of [`queue`] on `runtime`.
pub(crate) fn client(runtime: &MemoryRuntime) -> Client<MemoryRuntime> {
    Client::on(runtime.clone(), config()).queue(queue())
}

/// A client of [`queue`] that is connected to a broker which confirms nothing. At most `max_waiting` jobs wait.
pub(crate) fn connected(runtime: &MemoryRuntime, max_waiting: usize) -> (ConnectedClient, SilentBroker) {
    let mut config = config();
    config.session_mut().max_waiting = max_waiting;
    let mut broker = SilentBroker::accept(runtime);
    let mut connecting = Box::pin(Client::on(runtime.clone(), config).queue(queue()).connect());
    for _ in 0..10 {
        if let Poll::Ready(client) = runtime.poll(&mut connecting) {
            return (client.unwrap(), broker);
        }
        broker.serve(runtime);
    }
    panic!("the client does not connect");
}
