//! The two kinds of hold queues.

/// What a hold queue is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldKind {
    /// A classic queue that goes away when it is not used any more: `q.deferred.{ttl}`. Services of other
    /// systems share it. A *crash of the broker* can lose jobs that it has just released and not yet flushed
    /// to disk; a restart does not.
    #[default]
    Expiring,
    /// A quorum queue that hands over at least once: `q.held.{ttl}`. A crash of the broker loses nothing. It
    /// stays for ever and costs the broker a Raft group, so there are few of them, further apart.
    Replicated,
}
