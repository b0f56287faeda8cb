//! Every finding with the description that has it, its words, and a near miss that is fine.

mod arguments;
mod cycles;
mod everyday;
mod names;
mod properties;
mod settings;
mod targets;

use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::*;

fn short(text: &str) -> ShortString {
    ShortString::new(text).unwrap()
}

fn exchange_name(name: &str) -> ExchangeName {
    ExchangeName::new(name).unwrap()
}

fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn key(key: &str) -> RoutingKey {
    RoutingKey::new(key).unwrap()
}

fn plain(name: &str) -> PlainQueue {
    PlainQueue::new(name).unwrap()
}

/// A classic queue with raw arguments.
fn raw(name: &str, arguments: &[(&'static str, Value)]) -> PlainQueue {
    arguments.iter().fold(plain(name), |queue, (argument, value)| {
        queue.argument(ShortString::from_static(argument), value.clone())
    })
}

fn topic(name: &str) -> Exchange {
    Exchange::new(exchange_name(name), ExchangeKind::Topic)
}

fn bind(source: &str, queue: &str, routing_key: &str) -> Binding {
    Binding {
        source: exchange_name(source),
        destination: BindingDestination::Queue(short(queue)),
        routing_key: key(routing_key),
        arguments: Table::new(),
    }
}

fn to(queue: &str) -> DeadLetter {
    DeadLetter::to_queue(&queue_name(queue))
}

fn texts(topology: &Topology) -> Vec<String> {
    topology.check().iter().map(|finding| format!("{}, {finding}", finding.severity())).collect()
}

/// The one finding of a topology has all of these words.
#[track_caller]
fn finds(topology: &Topology, words: &[&str]) {
    let found = texts(topology);
    assert_eq!(found.len(), 1, "{found:#?}");
    for word in words {
        assert!(found[0].contains(word), "no {word:?} in: {}", found[0]);
    }
}

#[track_caller]
fn fine(topology: &Topology) {
    assert_eq!(texts(topology), [""; 0]);
}

/// With a queue alone.
fn with(queue: &PlainQueue) -> Topology {
    Topology::new().queue(queue)
}
