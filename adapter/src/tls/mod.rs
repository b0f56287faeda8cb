//! TLS with [rustls](https://docs.rs/rustls), over the transport of any runtime.
//!
//! | | |
//! |---|---|
//! | [`TlsConfigs`] | makes rustls's configuration of a [`TlsConfig`], once for each that differs |
//! | [`TlsClient`] | agrees on TLS with one server |
//! | [`TlsStream`] | the transport that comes of it |
//!
//! TLS 1.2 and 1.3, with ring's algorithms whatever the program has chosen as rustls's default. Certificates are
//! not looked up in lists of revoked ones.
//!
//! Files are read when a client first connects to an endpoint that names them, and the system's roots where none
//! does, on the thread that polls the driver: a few milliseconds, once in a client's life, before anything of it
//! moves. A certificate that was renewed on the disk is seen by the next client.

mod any_server;
mod config;
mod failure;
mod files;
mod handshake;
mod stream;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use leveret_core::connection::{TlsConfig, TlsFailure, Verification};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

pub(crate) use handshake::TlsClient;
pub(crate) use stream::TlsStream;

/// The configurations that were made, no more than the endpoints have different ones.
#[derive(Default)]
pub(crate) struct TlsConfigs(BTreeMap<Arc<TlsConfig>, Arc<ClientConfig>>);

impl TlsConfigs {
    /// What it takes to agree on TLS with the server on `host`. Reads files, the first time.
    ///
    /// # Errors
    ///
    /// [`TlsFailure`] where the configuration cannot be used. It is not kept: the next attempt reads the files again.
    pub(crate) fn client(&mut self, tls: &Arc<TlsConfig>, host: &str) -> Result<TlsClient, TlsFailure> {
        let name = tls.verified_name(host);
        let Ok(server) = ServerName::try_from(name.to_owned()) else {
            return Err(TlsFailure::ServerName { name: name.to_owned() });
        };
        let config = match self.0.get(tls) {
            Some(config) => config.clone(),
            None => {
                let config = Arc::new(config::make(tls)?);
                if tls.verification == Verification::None {
                    tracing::warn!(
                        target: "leveret",
                        host,
                        "verify_none: the server need not prove who it is, so that whoever sits in between can read \
                         everything, passwords too"
                    );
                }
                self.0.insert(tls.clone(), config.clone());
                config
            }
        };
        Ok(TlsClient::new(config, server))
    }
}
