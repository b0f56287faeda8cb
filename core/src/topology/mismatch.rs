//! What RabbitMQ says when a queue or exchange exists with other properties than the ones declared.

use std::fmt;

#[cfg(test)]
mod tests;

/// A queue or exchange that exists with other properties, read from the text of a 406 (`PRECONDITION_FAILED`).
///
/// The text is for people, so reading it is a best effort: a field that cannot be found is `None`. RabbitMQ
/// cuts its texts at 255 bytes, and a long name leaves no room for the rest.
///
/// Its `Display` says what to do about it.
///
/// ```
/// # use leveret_core::topology::{Mismatch, MismatchOf};
/// let text = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '5000' \
///             but current is '1000'";
/// let mismatch = Mismatch::from_reply_text(text).expect("a mismatch");
/// assert_eq!((mismatch.of, mismatch.name.as_deref()), (MismatchOf::Queue, Some("q")));
/// assert_eq!((mismatch.wanted.as_deref(), mismatch.found.as_deref()), (Some("5000"), Some("1000")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// What exists.
    pub of: MismatchOf,
    /// Its name.
    pub name: Option<String>,
    /// The property that differs, such as `x-message-ttl`, `durable`, or the `type` of an exchange.
    pub argument: String,
    /// What the declaration asked for; `none` where it did not name the property.
    pub wanted: Option<String>,
    /// What is there; `none` where it has no such property.
    pub found: Option<String>,
}

/// What exists with other properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchOf {
    /// A queue.
    Queue,
    /// An exchange.
    Exchange,
}

impl Mismatch {
    /// Reads the reply text of a channel that RabbitMQ closed with 406; `None` for any other text. It looks at the
    /// text a fixed number of times.
    #[must_use]
    pub fn from_reply_text(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("inequivalent arg '")?;
        let (argument, rest) = rest.split_once('\'')?;
        let (of, rest) = match rest.strip_prefix(" for exchange '") {
            Some(rest) => (MismatchOf::Exchange, Some(rest)),
            None => (MismatchOf::Queue, rest.strip_prefix(" for queue '")),
        };
        // A name may hold quotes and spaces, so its end is looked for from the back.
        let (name, values) = match rest.and_then(|rest| rest.rsplit_once("': received ")) {
            Some((name, values)) => (Some(name), Some(values)),
            None => (rest, None),
        };
        let name = name.and_then(|name| name.rsplit_once("' in vhost '")).map(|(name, _)| name.to_owned());
        let (wanted, found) = match values.and_then(sides) {
            Some((wanted, found)) => (value(wanted), value(found)),
            None => (None, None),
        };
        Some(Self { of, name, argument: argument.to_owned(), wanted, found })
    }

    fn is_named(&self, ends: impl Fn(&str) -> bool) -> bool {
        self.name.as_deref().is_some_and(ends)
    }

    /// What to do, step by step.
    fn advice(&self) -> &'static str {
        match (self.of, self.argument.as_str()) {
            (MismatchOf::Exchange, _) => {
                "describe the exchange as it is, use another name, or delete it and bind its queues again"
            }
            _ if self.is_named(is_hold) => {
                "what a hold queue looks like follows from its name, so something else declared it (on a virtual host \
                 whose default type is quorum, that can be a declaration without a type). Let it run empty and delete \
                 it, or use other suffixes"
            }
            (_, "x-max-priority") => {
                "the priorities of an existing queue cannot be changed, not by a policy either. Describe it as it is \
                 (its max_priority, 0 for none). Or migrate: stop what enqueues, let workers drain the queue and its \
                 holds, delete the queue, start again; or enqueue under a new name while workers drain the old one"
            }
            (_, "x-queue-type") => {
                "the type of an existing queue cannot be changed (on a virtual host whose default type is quorum, \
                 queues declared without a type are quorum). Describe it as it is. Or migrate: enqueue under a new \
                 name, let workers drain the old queue and its holds, look at its dead letters, delete the old queues"
            }
            _ if self.is_named(|name| name.ends_with(".retry")) => {
                "early versions of queuey had an internal queue of such a name, and what is in it comes back by \
                 itself. Give the waiting queue another name, or delete the old one once it is empty"
            }
            _ if self.is_named(|name| name.ends_with(".dead")) => {
                "what a dead-letter queue looks like follows from the type of its work queue, so something else declared \
                 it. Look at what is in it and delete it once it is empty, or give dead letters another suffix"
            }
            _ => "describe the queue as it is, use another name, or delete the queue once it is empty",
        }
    }
}

/// Whether a name ends like that of a hold with the suffixes of the wire format.
fn is_hold(name: &str) -> bool {
    super::Suffixes::DEFAULT.looks_like_hold(name)
}

/// What stands on either side of ` but current is `, which a value in quotes may hold as well.
fn sides(values: &str) -> Option<(&str, &str)> {
    const BETWEEN: &str = " but current is ";
    let wanted = match values.strip_prefix("none") {
        Some(_) => "none".len(),
        None => values.find("' but current is ")? + 1,
    };
    let (wanted, rest) = values.split_at(wanted);
    Some((wanted, rest.strip_prefix(BETWEEN)?))
}

/// `none`, `'5000'` or `the value '10' of type 'long'`; `None` when the text was cut.
fn value(text: &str) -> Option<String> {
    if text == "none" {
        return Some(text.to_owned());
    }
    let quoted = text.strip_prefix("the value ").unwrap_or(text).strip_prefix('\'')?;
    let (value, rest) = quoted.rsplit_once("' of type '").unwrap_or((quoted, ""));
    if rest.is_empty() { value.strip_suffix('\'').map(str::to_owned) } else { Some(value.to_owned()) }
}

impl fmt::Display for MismatchOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Exchange => "exchange",
        })
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = "something else";
        let Self { of, argument, .. } = self;
        match &self.name {
            Some(name) => write!(f, "the {of} {name:?}")?,
            None => write!(f, "the {of}")?,
        }
        write!(
            f,
            " exists with other properties: {argument} is {}, declared was {}; {}",
            self.found.as_deref().unwrap_or(unknown),
            self.wanted.as_deref().unwrap_or(unknown),
            self.advice()
        )
    }
}

impl std::error::Error for Mismatch {}
