//! A broker to run a behaviour on, and the faults that it can be given.

use std::fmt;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::rabbitmq::{RealBroker, brokers};
use leveret_tokio::Settlement;

/// The embedded broker or a RabbitMQ.
pub(crate) struct Place {
    uri: String,
    kind: Kind,
}

enum Kind {
    Embedded(TcpBroker),
    Real(&'static RealBroker),
}

/// Every broker there is.
pub(crate) fn all() -> Vec<Place> {
    let embedded = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").expect("a free port");
    let embedded = Place { uri: embedded.uri(), kind: Kind::Embedded(embedded) };
    let real = brokers().expect("the brokers that are required are there");
    std::iter::once(embedded).chain(real.iter().map(Place::real)).collect()
}

impl Place {
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) fn real(broker: &'static RealBroker) -> Self {
        Self { uri: broker.uri().to_owned(), kind: Kind::Real(broker) }
    }

    /// Whether it takes messages of more than 16 MiB: RabbitMQ 4 does not by default, and neither does the embedded
    /// broker.
    pub(crate) fn takes_large_messages(&self) -> bool {
        matches!(&self.kind, Kind::Real(broker) if broker.major_version() < 4)
    }

    /// Whether its quorum queues know priorities: from RabbitMQ 4 on.
    pub(crate) fn sorts_quorum_queues(&self) -> bool {
        matches!(&self.kind, Kind::Real(broker) if broker.major_version() >= 4)
    }

    /// Closes every connection, as an operator would.
    pub(crate) fn close_connections(&self) {
        match &self.kind {
            Kind::Embedded(broker) => broker.with(|broker, now| {
                for connection in broker.connections() {
                    broker.close_connection(now, connection.id, 320, "CONNECTION_FORCED - test");
                }
            }),
            Kind::Real(broker) => {
                broker.ctl(&["close_all_connections", "test"]).expect("rabbitmqctl works");
            }
        }
    }

    /// Raises a memory alarm, or ends it.
    pub(crate) fn set_alarm(&self, raised: bool) {
        match &self.kind {
            Kind::Embedded(broker) => broker.with(|broker, now| {
                if raised {
                    broker.block(now);
                } else {
                    broker.unblock(now);
                }
            }),
            Kind::Real(broker) => {
                let watermark = if raised { "0.00001" } else { "0.6" };
                broker.ctl(&["set_vm_memory_high_watermark", watermark]).expect("rabbitmqctl works");
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Embedded(_) => f.write_str("the embedded broker"),
            Kind::Real(broker) => write!(f, "RabbitMQ {}", broker.version()),
        }
    }
}

/// One word for what became of a delivery.
pub(crate) const fn name_of(settlement: &Settlement) -> &'static str {
    match settlement {
        Settlement::Done => "done",
        Settlement::Retried { .. } => "retried",
        Settlement::Deferred { .. } => "deferred",
        Settlement::DeadLettered { .. } => "dead",
        Settlement::Dropped { .. } => "dropped",
        Settlement::Requeued { .. } => "requeued",
        Settlement::Stale => "stale",
        _ => "rejected",
    }
}
