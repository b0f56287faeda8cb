//! Exchanges: which queues a routing key reaches (AMQP 0-9-1, 3.1.3).

use std::collections::BTreeSet;

use leveret_core::table::Table;
use leveret_core::text::ShortString;

/// How an exchange compares a routing key with its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The same text.
    Direct,
    /// Not at all.
    Fanout,
    /// By words, with `*` for one and `#` for any number.
    Topic,
    /// By the message's headers. Known by name only: bindings to it are refused.
    Headers,
}

impl Kind {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "direct" => Self::Direct,
            "fanout" => Self::Fanout,
            "topic" => Self::Topic,
            "headers" => Self::Headers,
            _ => return None,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
        }
    }
}

/// The exchanges that every virtual host has.
pub(super) const PREDECLARED: [(&str, Kind); 5] = [
    ("amq.direct", Kind::Direct),
    ("amq.fanout", Kind::Fanout),
    ("amq.headers", Kind::Headers),
    ("amq.match", Kind::Headers),
    ("amq.topic", Kind::Topic),
];

#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) kind: Kind,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) internal: bool,
    bindings: Vec<Binding>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Binding {
    pub(super) queue: ShortString,
    pub(super) routing_key: ShortString,
    pub(super) arguments: Table,
}

impl Exchange {
    pub(super) const fn new(kind: Kind, durable: bool, auto_delete: bool, internal: bool) -> Self {
        Self { kind, durable, auto_delete, internal, bindings: Vec::new() }
    }

    pub(super) fn bind(&mut self, binding: Binding) {
        if !self.bindings.contains(&binding) {
            self.bindings.push(binding);
        }
    }

    /// Takes the bindings away that `unwanted` says. True if the exchange goes with its last one.
    pub(super) fn unbind(&mut self, unwanted: impl Fn(&Binding) -> bool) -> bool {
        let before = self.bindings.len();
        self.bindings.retain(|binding| !unwanted(binding));
        self.auto_delete && before > 0 && self.bindings.is_empty()
    }

    pub(super) const fn is_used(&self) -> bool {
        !self.bindings.is_empty()
    }

    /// The queues that a message with this routing key goes to, each once.
    pub(super) fn route(&self, routing_key: &str) -> BTreeSet<ShortString> {
        self.bindings
            .iter()
            .filter(|binding| match self.kind {
                Kind::Direct => binding.routing_key == routing_key,
                Kind::Fanout => true,
                Kind::Topic => topic_matches(&binding.routing_key, routing_key),
                Kind::Headers => false,
            })
            .map(|binding| binding.queue.clone())
            .collect()
    }
}

/// Whether a topic pattern matches: in time linear in pattern times key, whatever the pattern.
fn topic_matches(pattern: &str, key: &str) -> bool {
    let words: Vec<&str> = if key.is_empty() { Vec::new() } else { key.split('.').collect() };
    // reached[n]: the pattern so far matches the first n words.
    let mut reached = vec![false; words.len() + 1];
    reached[0] = true;
    for part in pattern.split('.').filter(|_| !pattern.is_empty()) {
        let mut next = vec![false; words.len() + 1];
        for n in 0..=words.len() {
            next[n] = match part {
                "#" => reached[n] || n > 0 && next[n - 1],
                "*" => n > 0 && reached[n - 1],
                word => n > 0 && reached[n - 1] && words[n - 1] == word,
            };
        }
        reached = next;
    }
    reached[words.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_word_and_a_hash_any_number() {
        for (pattern, key, expected) in [
            ("a.*.c", "a.b.c", true),
            ("a.*.c", "a.c", false),
            ("#", "", true),
            ("#", "a.b", true),
            ("a.#", "a", true),
            ("a.#.z", "a.b.c.z", true),
            ("a.#.z", "a.b.c", false),
            ("", "", true),
            ("*", "", false),
        ] {
            assert_eq!(topic_matches(pattern, key), expected, "{pattern:?} against {key:?}");
        }
    }
}
