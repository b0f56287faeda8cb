//! How a connection and its channels end: everything that waits is told why.

use std::sync::Arc;

use super::confirms::Confirms;
use super::{ChannelClosed, ChannelId, Connection, ConnectionError, Event, Phase, Verdict};
use crate::text::ShortString;
use crate::wire::method;

impl Connection {
    /// Ends the connection because of `error`, and tells the peer where that is its fault.
    pub(super) fn fail(&mut self, error: ConnectionError) {
        match (&self.phase, &error) {
            (Phase::Closed, _) => return,
            (Phase::Closing, ConnectionError::ClosedLocally { .. }) => {}
            // Whatever ends a connection that we are closing, it was us who closed it.
            (Phase::Closing, _) => {
                self.finish(ConnectionError::ClosedLocally { acknowledged: false });
                return;
            }
            (Phase::Open, ConnectionError::Protocol(broken)) => {
                let text = ShortString::truncated(&broken.to_string());
                self.outgoing.push_control(method::connection_close(broken.reply_code(), &text));
            }
            _ => {}
        }
        self.finish(error);
    }

    /// Ends the connection: everything that waits is told why.
    pub(super) fn finish(&mut self, error: ConnectionError) {
        self.phase = Phase::Closed;
        self.timers.clear_all();
        self.heartbeat_due = false;
        self.outgoing.drop_channels();
        let error = Arc::new(error);
        let live: Vec<ChannelId> = self.channels.live().collect();
        for channel in live {
            self.end_channel(channel, &ChannelClosed::ConnectionEnded(Arc::clone(&error)));
        }
        self.events.push(Event::Closed(error));
    }

    /// Ends a channel: its open publishes have no verdict any more.
    pub(super) fn end_channel(&mut self, id: ChannelId, cause: &ChannelClosed) {
        let Some(channel) = self.channels.end(id) else { return };
        for sequence in channel.confirms.into_iter().flat_map(Confirms::abandon) {
            let verdict = Verdict::Unknown(cause.clone());
            self.events.push(Event::Verdict { channel: id, sequence, verdict });
        }
        self.events.push(Event::ChannelClosed { channel: id, cause: cause.clone() });
    }
}
