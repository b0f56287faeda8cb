//! A client among hostile servers: every answer is a typed error within its bound, or does no harm.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod connecting;
mod consuming;
mod publishing;
mod server;

use std::time::Duration;

use leveret_tokio::{Client, Config, ConnectError, ConnectedClient, Job, Queue, Reconnect};
use serde::{Deserialize, Serialize};

use server::Server;

/// What a test waits at most for anything that has a bound of its own.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize)]
struct Note(String);

impl Job for Note {
    const NAME: &'static str = "note";
}

fn queue() -> Queue {
    Queue::new("q").unwrap().prefetch(2)
}

fn config(server: &Server) -> Config {
    let at_once = Reconnect { base: Duration::from_millis(50), ..Reconnect::default() };
    Config::from_uri(&format!("amqp://{}", server.addr()))
        .unwrap()
        .connect_timeout(Duration::from_secs(1))
        .reconnect(at_once)
}

async fn connect(server: &Server) -> Result<ConnectedClient, ConnectError> {
    let connecting = Client::new(config(server)).queue(queue()).connect();
    tokio::time::timeout(PATIENCE, connecting).await.expect("connecting has a bound of its own")
}

/// Waits for something that must come within a bound.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing waits for ever")
}
