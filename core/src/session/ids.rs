//! Names for what a session holds. All are values that can outlive the thing they name: using a stale one is an
//! error or does nothing.

use std::fmt;

/// One of the session's TCP connections.
///
/// There are two, because RabbitMQ stops reading from a connection that publishes while a resource alarm is on,
/// and acknowledgements must still get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkId {
    /// Declares queues and publishes.
    Publish,
    /// Consumes and acknowledges. Opened by the first subscription.
    Consume,
}

impl LinkId {
    /// Both links, in the order in which a driver should serve them: acknowledgements first.
    pub const ALL: [Self; 2] = [Self::Consume, Self::Publish];
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publish => "publishing link",
            Self::Consume => "consuming link",
        })
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(super) u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number! {
    /// One try to connect a link. Input that carries an earlier attempt is ignored, so late bytes of a dead socket
    /// are harmless.
    Attempt
}
number! {
    /// One accepted publish, answered by [`SessionEvent::Enqueued`](super::SessionEvent::Enqueued).
    PublishId
}
number! {
    /// One subscription.
    SubscriptionId
}
number! {
    /// One question about a queue.
    RequestId
}
