//! TLS against rustls's own server, over transports in memory.

mod config;
mod connecting;
mod handshake;
mod transport;
mod world;
