//! What the driver reads and writes: the runtime's transport, with TLS over it or without.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use bytes::BytesMut;
#[cfg(not(feature = "tls"))]
use leveret_core::connection::TlsFailure;
use leveret_core::session::{ConnectFailure, Endpoint};

use crate::panic::BoxFuture;
use crate::runtime::{Runtime, Transport};
#[cfg(feature = "tls")]
use crate::tls::{TlsConfigs, TlsStream};

/// A transport, with TLS where the endpoint asks for it.
pub(crate) enum Stream<T> {
    Plain(T),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<T>>),
}

/// Makes streams.
#[derive(Default)]
pub(crate) struct Connector {
    #[cfg(feature = "tls")]
    configs: TlsConfigs,
}

/// A stream that is being made. Whoever has no more time for it drops it.
pub(crate) type Connecting<T> = BoxFuture<Result<Stream<T>, ConnectFailure>>;

impl Connector {
    /// Begins to connect. TLS is agreed on before the future is ready: an endpoint that asks for it is told nothing
    /// in the clear.
    pub(crate) fn connect<R: Runtime>(
        &mut self,
        runtime: &R,
        endpoint: Endpoint,
    ) -> Connecting<R::Transport> {
        let runtime = runtime.clone();
        match endpoint.tls.clone() {
            Some(tls) => self.connect_tls(runtime, endpoint, &tls),
            None => Box::pin(async move { connect_plain(&runtime, &endpoint).await.map(Stream::Plain) }),
        }
    }

    #[cfg(feature = "tls")]
    fn connect_tls<R: Runtime>(
        &mut self,
        runtime: R,
        endpoint: Endpoint,
        tls: &std::sync::Arc<leveret_core::connection::TlsConfig>,
    ) -> Connecting<R::Transport> {
        let client = match self.configs.client(tls, &endpoint.host) {
            Ok(client) => client,
            Err(failure) => return Box::pin(std::future::ready(Err(ConnectFailure::Tls(failure)))),
        };
        Box::pin(async move {
            let transport = connect_plain(&runtime, &endpoint).await?;
            let stream = client.handshake(transport).await.map_err(ConnectFailure::Tls)?;
            Ok(Stream::Tls(Box::new(stream)))
        })
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    fn connect_tls<R: Runtime>(
        &mut self,
        _: R,
        _: Endpoint,
        _: &leveret_core::connection::TlsConfig,
    ) -> Connecting<R::Transport> {
        Box::pin(std::future::ready(Err(ConnectFailure::Tls(TlsFailure::NotBuilt))))
    }
}

async fn connect_plain<R: Runtime>(runtime: &R, endpoint: &Endpoint) -> Result<R::Transport, ConnectFailure> {
    runtime.connect(endpoint).await.map_err(|error| ConnectFailure::Socket(error.to_string()))
}

impl<T: Transport> Transport for Stream<T> {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(plain) => plain.poll_read(cx, input),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.poll_read(cx, input),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(plain) => plain.poll_write(cx, output),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.poll_write(cx, output),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(plain) => plain.poll_flush(cx),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.poll_flush(cx),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(plain) => plain.poll_close(cx),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.poll_close(cx),
        }
    }
}
