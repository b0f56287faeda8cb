//! From a connected transport to TLS.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use leveret_core::connection::TlsFailure;
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use super::failure;
use super::stream::{Fault, TlsStream};
use crate::runtime::Transport;

/// Records per poll. With the bound on a turn of the driver, a server that goes on and on holds nobody up.
const STEPS: usize = 32;

/// Agrees on TLS with one server.
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
}

impl TlsClient {
    /// A client for the server whose certificate must be for `server`. A name is sent to it (SNI), an address is not:
    /// RFC 6066, section 3.
    pub(super) const fn new(config: Arc<ClientConfig>, server: ServerName<'static>) -> Self {
        Self { config, server }
    }

    /// Agrees on TLS over `transport`. It has no bound of its own: whoever has no more time drops the future.
    ///
    /// # Errors
    ///
    /// [`TlsFailure`]. The transport is dropped.
    pub(crate) async fn handshake<T: Transport>(self, transport: T) -> Result<TlsStream<T>, TlsFailure> {
        let name = self.server.to_str().into_owned();
        let tls = ClientConnection::new(self.config, self.server)
            .map_err(|error| TlsFailure::Unusable { reason: error.to_string() })?;
        let mut stream = TlsStream::new(transport, tls);
        poll_fn(|cx| poll_handshake(&mut stream, &name, cx)).await?;
        Ok(stream)
    }
}

fn poll_handshake<T: Transport>(
    stream: &mut TlsStream<T>,
    name: &str,
    cx: &mut Context<'_>,
) -> Poll<Result<(), TlsFailure>> {
    for _ in 0..STEPS {
        let flushed = stream.poll_flush(cx);
        if let Poll::Ready(Err(error)) = flushed {
            // Its last words may say why it takes no more.
            return Poll::Ready(Err(match stream.poll_receive(cx) {
                Poll::Ready(Err(Fault::Tls(error))) => failure::of_handshake(&error, name, stream.opening()),
                _ => TlsFailure::Io { text: error.to_string() },
            }));
        }
        if !stream.is_handshaking() {
            return flushed.map(|_| Ok(()));
        }
        // A server that says no may have closed before it took all of ours, so reading goes on meanwhile.
        match ready!(stream.poll_receive(cx)) {
            Ok(()) if stream.has_ended() => return Poll::Ready(Err(TlsFailure::Ended)),
            Ok(()) => {}
            Err(Fault::Io(error)) => return Poll::Ready(Err(TlsFailure::Io { text: error.to_string() })),
            Err(Fault::Tls(error)) => {
                return Poll::Ready(Err(failure::of_handshake(&error, name, stream.opening())));
            }
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
