//! Exchanges: where a message goes next (AMQP 0-9-1, 3.1.3).

use leveret_core::table::{Table, Value};
use leveret_core::text::ShortString;

use super::message::Message;
use super::table;

/// How an exchange compares a routing key with its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The same text.
    Direct,
    /// Not at all.
    Fanout,
    /// By words, with `*` for one and `#` for any number.
    Topic,
    /// By the message's headers.
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

/// Where a binding leads, within its virtual host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Destination {
    Queue(ShortString),
    /// RabbitMQ's extension.
    Exchange(ShortString),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Binding {
    pub(super) destination: Destination,
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

    /// Where a message goes from here.
    pub(super) fn route<'a>(&'a self, message: &'a Message) -> impl Iterator<Item = &'a Destination> {
        let matching = |binding: &&Binding| match self.kind {
            Kind::Direct => binding.routing_key == message.routing_key,
            Kind::Fanout => true,
            Kind::Topic => topic_matches(&binding.routing_key, &message.routing_key),
            Kind::Headers => headers_match(&binding.arguments, message.properties.headers()),
        };
        self.bindings.iter().filter(matching).map(|binding| &binding.destination)
    }
}

const X_MATCH: &str = "x-match";

/// How a binding of a headers exchange wants to be matched. None where RabbitMQ refuses it.
fn x_match(arguments: &Table) -> Option<(bool, bool)> {
    match arguments.get(X_MATCH) {
        None => Some((true, false)),
        Some(Value::LongString(how)) => match &how[..] {
            b"all" => Some((true, false)),
            b"any" => Some((false, false)),
            b"all-with-x" => Some((true, true)),
            b"any-with-x" => Some((false, true)),
            _ => None,
        },
        Some(_) => None,
    }
}

/// Whether a headers exchange takes these arguments of a binding.
pub(super) fn is_valid_match(arguments: &Table) -> bool {
    x_match(arguments).is_some()
}

/// RabbitMQ: headers that begin with `x-` are left out unless `-with-x` is asked for; a value of no type asks
/// for presence only, any other for the same type and value.
fn headers_match(arguments: &Table, headers: &[u8]) -> bool {
    let Some((all, with_x)) = x_match(arguments) else { return false };
    let mut wanted = arguments
        .iter()
        .filter(|(name, _)| *name != X_MATCH && (with_x || !name.starts_with("x-")))
        .map(|(name, wanted)| match (wanted, table::value(headers, name)) {
            (_, None) => false,
            (Value::Void, Some(_)) => true,
            (wanted, Some(found)) => *wanted == found,
        });
    if all { wanted.all(|matches| matches) } else { wanted.any(|matches| matches) }
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
    fn headers_match_all_or_any_of_what_a_binding_wants() {
        let short = |text: &'static str| ShortString::from_static(text);
        // The fields `format: "pdf"` and `x-urgent: true`, as a table holds them.
        let headers = b"\x06formatS\0\0\0\x03pdf\x08x-urgentt\x01";
        let pdf = || Table::new().with(short("format"), "pdf");
        let how = |table: Table, how: &'static str| table.with(short("x-match"), how);
        for (arguments, expected) in [
            (Table::new(), true),
            (how(Table::new(), "any"), false),
            (pdf(), true),
            (pdf().with(short("type"), "log"), false),
            (how(pdf().with(short("type"), "log"), "any"), true),
            (pdf().with(short("x-urgent"), false), true),
            (how(pdf().with(short("x-urgent"), false), "all-with-x"), false),
            (how(Table::new().with(short("x-urgent"), true), "any-with-x"), true),
            (Table::new().with(short("format"), 5_i64), false),
        ] {
            assert_eq!(headers_match(&arguments, headers), expected, "{arguments:?}");
        }
        assert!(!is_valid_match(&how(Table::new(), "some")));
    }

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
