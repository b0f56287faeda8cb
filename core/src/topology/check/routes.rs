//! Where dead letters go: queues, exchanges and bindings as a graph.
//!
//! A node is a queue, a message at an exchange with a routing key, or all that is bound to an exchange. An edge
//! is *certain* where every message of its node takes it, and *possible* where that depends on what nobody knows
//! before the message is there.

use std::collections::{BTreeMap, BTreeSet};

use super::topic::{is_pattern, topic_matches};
use crate::table::Table;
use crate::text::ShortString;
use crate::topology::argument_list::{integer, queue_type, text};
use crate::topology::arguments::{
    ALTERNATE_EXCHANGE, DEAD_LETTER_EXCHANGE, DEAD_LETTER_ROUTING_KEY, DELIVERY_LIMIT, MAX_LENGTH,
    MAX_LENGTH_BYTES, MESSAGE_TTL, OVERFLOW,
};
use crate::topology::{BindingDestination, DelayedRouting, ExchangeDeclaration, ExchangeKind, Topology};

/// How many bindings are compared with routing keys. Beyond it a message counts as possibly going to all that is
/// bound: many keys at many exchanges would multiply.
const COMPARISONS_MAX: usize = 1_000_000;

/// How sure an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    Possible,
    Certain,
}
use Certainty::{Certain, Possible};

/// The graph. The first nodes are the queues, in the order of `Topology::all_queues`.
pub(super) struct Graph {
    pub(super) edges: Vec<Vec<(usize, Certainty)>>,
    /// Every target of dead letters, of which queue it is, and its node.
    pub(super) dead_letters: Vec<(ShortString, DeadLetterAt, usize)>,
}

/// Where a queue dead-letters to: the exchange, and the routing key where it is fixed.
pub(super) type DeadLetterAt = (ShortString, Option<ShortString>);

impl Graph {
    pub(super) fn new(topology: &Topology) -> Self {
        Self::within(topology, COMPARISONS_MAX)
    }

    /// With another bound on the comparisons.
    pub(super) fn within(topology: &Topology, comparisons: usize) -> Self {
        Builder::new(topology, comparisons).build(topology)
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A message at an exchange; `None` for a routing key that is not known.
    Message(ShortString, Option<ShortString>),
    /// All queues that are bound to an exchange.
    Bound(ShortString),
}

/// How an exchange picks among its bindings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    Equal,
    Pattern,
    All,
    Unknown,
}

/// What is bound to one exchange.
#[derive(Default)]
struct Bindings {
    by_key: BTreeMap<ShortString, Vec<Target>>,
    /// Those of the keys that are patterns to a topic exchange. The others match nothing but themselves.
    patterns: BTreeSet<ShortString>,
    bound_with_patterns: usize,
    queues: Vec<usize>,
    exchanges: Vec<ShortString>,
}

impl Bindings {
    fn bound_with(&self, key: &ShortString) -> &[Target] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }
}

#[derive(Clone)]
enum Target {
    Queue(usize),
    Exchange(ShortString),
}

struct Builder<'a> {
    queue_at: BTreeMap<&'a str, usize>,
    exchange_at: BTreeMap<&'a str, &'a ExchangeDeclaration>,
    bound: BTreeMap<&'a str, Bindings>,
    edges: Vec<Vec<(usize, Certainty)>>,
    node_of: BTreeMap<Place, usize>,
    /// Places whose edges are still to be drawn.
    open: Vec<(usize, Place)>,
    /// Queues that dead-letter by themselves: where an unknown key of the default exchange could matter.
    automatic: Vec<usize>,
    /// A queue that is not described here: it takes messages all the same, and leads nowhere that is known.
    elsewhere: usize,
    comparisons_left: usize,
}

impl<'a> Builder<'a> {
    fn new(topology: &'a Topology, comparisons: usize) -> Self {
        let queue_at: BTreeMap<&str, usize> =
            topology.queues.iter().enumerate().map(|(at, queue)| (queue.name.as_str(), at)).collect();
        let elsewhere = topology.queues.len() + topology.server_named.len();
        let mut bound: BTreeMap<&str, Bindings> = BTreeMap::new();
        let of_named = topology.bindings.iter().map(|binding| (binding, elsewhere));
        let of_server_named = (topology.queues.len()..)
            .zip(&topology.server_named)
            .flat_map(|(at, (_, bindings))| bindings.iter().map(move |binding| (binding, at)));
        for (binding, unnamed) in of_named.chain(of_server_named) {
            let at = bound.entry(binding.source.as_str()).or_default();
            let target = match &binding.destination {
                BindingDestination::Queue(name) => {
                    let queue = queue_at.get(name.as_str()).copied().unwrap_or(unnamed);
                    at.queues.push(queue);
                    Target::Queue(queue)
                }
                BindingDestination::Exchange(name) => {
                    at.exchanges.push(name.as_short().clone());
                    Target::Exchange(name.as_short().clone())
                }
            };
            let key = binding.routing_key.as_short();
            if is_pattern(key) {
                at.patterns.insert(key.clone());
                at.bound_with_patterns += 1;
            }
            at.by_key.entry(key.clone()).or_default().push(target);
        }
        Self {
            queue_at,
            exchange_at: topology
                .exchanges
                .iter()
                .map(|exchange| (exchange.name.as_str(), exchange))
                .collect(),
            bound,
            edges: vec![Vec::new(); elsewhere + 1],
            node_of: BTreeMap::new(),
            open: Vec::new(),
            automatic: Vec::new(),
            elsewhere,
            comparisons_left: comparisons,
        }
    }

    fn build(mut self, topology: &'a Topology) -> Graph {
        let mut dead_letters = Vec::new();
        for (at, queue) in topology.all_queues().enumerate() {
            let Some(exchange) = text(&queue.arguments, &DEAD_LETTER_EXCHANGE) else { continue };
            let key = text(&queue.arguments, &DEAD_LETTER_ROUTING_KEY).map(ShortString::truncated);
            let target = (ShortString::truncated(exchange), key);
            let node = self.node(Place::Message(target.0.clone(), target.1.clone()));
            dead_letters.push((queue.name.clone(), target, node));
            let expires_by_message = topology.waiting.contains(&queue.name);
            let certainty = if expires_by_message { Some(Certain) } else { dies_by_itself(&queue.arguments) };
            if let Some(certainty) = certainty {
                self.edge(at, node, certainty);
                self.automatic.push(at);
            }
        }
        for (queue, to) in &topology.published {
            let target = (to.exchange().as_short().clone(), to.key().map(|key| key.as_short().clone()));
            let node = self.node(Place::Message(target.0.clone(), target.1.clone()));
            dead_letters.push((queue.clone(), target, node));
        }
        while let Some((node, place)) = self.open.pop() {
            match place {
                Place::Message(exchange, key) => self.route(node, &exchange, key),
                Place::Bound(exchange) => {
                    if let Some(bindings) = self.bound.get(exchange.as_str()) {
                        let queues = bindings.queues.iter().map(|queue| (*queue, Certain));
                        self.edges[node].extend(queues);
                    }
                }
            }
        }
        Graph { edges: self.edges, dead_letters }
    }

    /// Draws the edges of a message at an exchange.
    fn route(&mut self, node: usize, exchange: &ShortString, key: Option<ShortString>) {
        if exchange.is_empty() {
            match key {
                Some(key) => {
                    if let Some(queue) = self.queue_at.get(key.as_str()).copied() {
                        self.edge(node, queue, Certain);
                    }
                }
                None => {
                    let queues = self.automatic.iter().map(|queue| (*queue, Possible));
                    self.edges[node].extend(queues);
                }
            }
            return;
        }
        let pick = self.pick(exchange);
        // What cannot be compared has no key from here on, or every exchange behind would multiply by every key.
        let key = key.filter(|key| self.afford(exchange, pick, key));
        match &key {
            Some(key) => self.route_key(node, exchange, pick, key),
            None => self.route_any(node, exchange, if pick == Pick::All { Certain } else { Possible }, None),
        }
        let declared = self.exchange_at.get(exchange.as_str());
        // Others may have bound to an exchange that was there before.
        let known_elsewhere =
            declared.is_some_and(|exchange| exchange.passive) || exchange.starts_with("amq.");
        let alternate = declared.and_then(|exchange| text(&exchange.arguments, &ALTERNATE_EXCHANGE));
        let routed = self.edges[node].iter().map(|(_, certainty)| *certainty).max();
        if let (Some(alternate), None | Some(Possible)) = (alternate, routed) {
            let certainty = if routed.is_none() { Certain } else { Possible };
            let to = self.node(Place::Message(ShortString::truncated(alternate), key));
            self.edge(node, to, certainty);
        }
        if known_elsewhere {
            self.edge(node, self.elsewhere, Possible);
        }
    }

    fn route_key(&mut self, node: usize, exchange: &ShortString, pick: Pick, key: &ShortString) {
        let matching = match (self.bound.get(exchange.as_str()), pick) {
            (None, _) => return,
            (Some(bindings), Pick::Equal) => bindings.bound_with(key).to_vec(),
            (Some(bindings), Pick::Pattern) => {
                let literal = (!bindings.patterns.contains(key)).then_some(key);
                let patterns = bindings.patterns.iter().filter(|pattern| topic_matches(pattern, key));
                literal
                    .into_iter()
                    .chain(patterns)
                    .flat_map(|key| bindings.bound_with(key))
                    .cloned()
                    .collect()
            }
            (Some(_), Pick::All) => return self.route_any(node, exchange, Certain, Some(key)),
            (Some(_), Pick::Unknown) => return self.route_any(node, exchange, Possible, Some(key)),
        };
        for target in matching {
            let to = match target {
                Target::Queue(queue) => queue,
                Target::Exchange(exchange) => self.node(Place::Message(exchange, Some(key.clone()))),
            };
            self.edge(node, to, Certain);
        }
    }

    /// To all that is bound.
    fn route_any(
        &mut self,
        node: usize,
        exchange: &ShortString,
        certainty: Certainty,
        key: Option<&ShortString>,
    ) {
        let Some(bindings) = self.bound.get(exchange.as_str()) else { return };
        let (queues, exchanges) = (!bindings.queues.is_empty(), bindings.exchanges.clone());
        if queues {
            let all = self.node(Place::Bound(exchange.clone()));
            self.edge(node, all, certainty);
        }
        for exchange in exchanges {
            let to = self.node(Place::Message(exchange, key.cloned()));
            self.edge(node, to, certainty);
        }
    }

    /// Whether the bindings of an exchange can still be compared with one more routing key.
    fn afford(&mut self, exchange: &ShortString, pick: Pick, key: &ShortString) -> bool {
        let cost = self.bound.get(exchange.as_str()).map_or(0, |bindings| match pick {
            Pick::Equal => bindings.bound_with(key).len(),
            Pick::Pattern => bindings.bound_with(key).len() + bindings.bound_with_patterns,
            Pick::All | Pick::Unknown => bindings.exchanges.len(),
        });
        match self.comparisons_left.checked_sub(cost + 1) {
            Some(left) => self.comparisons_left = left,
            None => return false,
        }
        true
    }

    fn pick(&self, exchange: &ShortString) -> Pick {
        match (
            self.exchange_at.get(exchange.as_str()).filter(|exchange| !exchange.passive),
            exchange.as_str(),
        ) {
            (Some(declared), _) => match &declared.kind {
                ExchangeKind::Direct | ExchangeKind::Delayed { routes: DelayedRouting::Direct } => {
                    Pick::Equal
                }
                ExchangeKind::Topic | ExchangeKind::Delayed { routes: DelayedRouting::Topic } => {
                    Pick::Pattern
                }
                ExchangeKind::Fanout | ExchangeKind::Delayed { routes: DelayedRouting::Fanout } => Pick::All,
                _ => Pick::Unknown,
            },
            (None, "amq.direct") => Pick::Equal,
            (None, "amq.topic") => Pick::Pattern,
            (None, "amq.fanout") => Pick::All,
            (None, _) => Pick::Unknown,
        }
    }

    fn edge(&mut self, from: usize, to: usize, certainty: Certainty) {
        self.edges[from].push((to, certainty));
    }

    fn node(&mut self, place: Place) -> usize {
        if let Some(node) = self.node_of.get(&place) {
            return *node;
        }
        let node = self.edges.len();
        self.edges.push(Vec::new());
        self.node_of.insert(place.clone(), node);
        self.open.push((node, place));
        node
    }
}

/// Whether messages leave a queue for its dead-letter exchange without being rejected: because of their age, of the
/// queue's length, or of how often they were delivered.
fn dies_by_itself(arguments: &Table) -> Option<Certainty> {
    let present = |name: &str| integer(arguments, name).is_some();
    let is_full_for_new_ones = text(arguments, &OVERFLOW) == Some("reject-publish");
    let limited = present(&MAX_LENGTH) || present(&MAX_LENGTH_BYTES);
    if present(&MESSAGE_TTL) || present(&DELIVERY_LIMIT) || limited && !is_full_for_new_ones {
        Some(Certain)
    } else {
        // RabbitMQ 4.0 and later give every quorum queue a delivery limit.
        (queue_type(arguments) == Some("quorum")).then_some(Possible)
    }
}
