//! `Connection` alone, in a blocking loop, against every RabbitMQ that is there: what its machine assumes of a broker is
//! what brokers do.
#![cfg(unix)]
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says why")]

mod alarm;
mod load;
mod methods;
mod unacked;

use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock};

use leveret_core::connection::{ChannelId, Connection, ConnectionConfig, ConnectionError, Delivery, Event};
use leveret_core::table::Table;
use leveret_core::text::ShortString;
use leveret_core::topology::QueueDeclaration;
use leveret_testkit::blocking::BlockingConnection;
use leveret_testkit::rabbitmq::{RealBroker, needed_brokers, unique_name};

/// An alarm is for the whole broker, so the test that raises one is alone.
static ALARM: RwLock<()> = RwLock::new(());

/// Checks something on every broker.
fn everywhere(check: impl Fn(&RealBroker)) {
    let _quiet = ALARM.read().unwrap_or_else(PoisonError::into_inner);
    for broker in needed_brokers().expect("the brokers that are required are there") {
        check(broker);
    }
}

/// A client that waits for one thing at a time.
struct Client {
    socket: BlockingConnection,
    /// Deliveries that came while something else was waited for.
    early: VecDeque<Delivery>,
}

impl Client {
    fn connect(broker: &RealBroker) -> Self {
        Self::with(broker, |config| config)
    }

    fn with(broker: &RealBroker, change: impl FnOnce(ConnectionConfig) -> ConnectionConfig) -> Self {
        let socket = BlockingConnection::with(broker.uri(), change).expect("the broker is there");
        let mut client = Self { socket, early: VecDeque::new() };
        client.expect("opened", |event| matches!(event, Event::Opened { .. }));
        client
    }

    fn on(&mut self) -> &mut Connection {
        self.socket.connection()
    }

    fn event(&mut self) -> Event {
        self.socket.event().expect("it goes on")
    }

    /// The next event that is no delivery, which must be this one.
    fn expect(&mut self, wanted: &str, is_it: impl Fn(&Event) -> bool) -> Event {
        loop {
            match self.event() {
                event if is_it(&event) => return event,
                Event::Delivery(delivery) => self.early.push_back(delivery),
                other => panic!("wanted {wanted}, found {other:?}"),
            }
        }
    }

    fn delivery(&mut self) -> Delivery {
        if let Some(delivery) = self.early.pop_front() {
            return delivery;
        }
        match self.event() {
            Event::Delivery(delivery) => delivery,
            other => panic!("wanted a delivery, found {other:?}"),
        }
    }

    fn channel(&mut self) -> ChannelId {
        let channel = self.on().open_channel().expect("it is open");
        self.expect("a channel", |event| *event == Event::ChannelOpened { channel });
        channel
    }

    /// Declares a classic queue that goes with this connection.
    fn queue(&mut self, channel: ChannelId) -> ShortString {
        let name = name("live");
        let mut declaration = QueueDeclaration::durable(name.clone(), Table::new());
        (declaration.durable, declaration.exclusive) = (false, true);
        self.on().declare_queue(channel, &declaration).expect("it is open");
        self.expect("a queue", |event| matches!(event, Event::QueueDeclared { .. }));
        name
    }

    /// Closes, and checks that the broker had no complaint.
    fn close(mut self) {
        let now = self.socket.now();
        self.on().close(now, 200, "done");
        loop {
            if let Event::Closed(error) = self.event() {
                assert_eq!(*error, ConnectionError::ClosedLocally { acknowledged: true });
                return;
            }
        }
    }
}

fn name(prefix: &str) -> ShortString {
    ShortString::truncated(&unique_name(prefix))
}
