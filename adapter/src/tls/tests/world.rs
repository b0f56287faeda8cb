//! Certificates made for a test, and a server that shows them.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use leveret_core::connection::{ClientCertificate, TlsConfig, TlsFailure};
use leveret_core::session::Endpoint;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::super::{TlsConfigs, TlsStream};
use crate::runtime::{Runtime, Transport};
use crate::testing::{Memory, MemoryRuntime, Peer};

/// TLS 1.2 and no other.
pub(super) const ONLY_12: &[&SupportedProtocolVersion] = &[&TLS12];
/// TLS 1.3 and no other.
pub(super) const ONLY_13: &[&SupportedProtocolVersion] = &[&TLS13];

/// The same with a change.
pub(super) fn with(mut tls: TlsConfig, change: impl FnOnce(&mut TlsConfig)) -> TlsConfig {
    change(&mut tls);
    tls
}

/// Who signs certificates.
pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM form.
pub(super) struct Identity {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        Self::named("an authority")
    }

    pub(super) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for these names and addresses.
    pub(super) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_valid(names, 1990, 2200)
    }

    /// One that is valid between the beginnings of two years.
    pub(super) fn issue_valid(&self, names: &[&str], from: i32, until: i32) -> Identity {
        let names: Vec<String> = names.iter().copied().map(str::to_owned).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        roots
    }
}

/// A directory for a test's files, removed with it.
pub(super) struct Files(PathBuf);

impl Files {
    pub(super) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("leveret-tls-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// What a client is told that trusts `authority`.
    pub(super) fn trusting(&self, authority: &Authority) -> TlsConfig {
        with(TlsConfig::default(), |tls| tls.ca_file = Some(self.write("ca.pem", &authority.pem)))
    }

    pub(super) fn client_certificate(&self, identity: &Identity) -> ClientCertificate {
        ClientCertificate {
            cert_file: self.write("client.pem", &identity.certificate),
            key_file: self.write("client.key", &identity.key),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How a server is set up.
pub(super) struct Setup<'a> {
    identity: &'a Identity,
    /// Whose key it signs with.
    key: &'a Identity,
    clients: Option<&'a Authority>,
    versions: &'static [&'static SupportedProtocolVersion],
}

impl<'a> Setup<'a> {
    pub(super) const fn new(identity: &'a Identity) -> Self {
        Self { identity, key: identity, clients: None, versions: rustls::ALL_VERSIONS }
    }

    /// Clients must show a certificate that this authority has signed.
    pub(super) const fn asking_clients(mut self, authority: &'a Authority) -> Self {
        self.clients = Some(authority);
        self
    }

    /// It shows its certificate and has not the key of it but another one.
    pub(super) const fn without_its_key(mut self, other: &'a Identity) -> Self {
        self.key = other;
        self
    }

    pub(super) const fn speaking(mut self, versions: &'static [&'static SupportedProtocolVersion]) -> Self {
        self.versions = versions;
        self
    }

    /// Answers the next connect on `runtime`.
    pub(super) fn accept(&self, runtime: &MemoryRuntime) -> Server {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(self.versions).unwrap();
        let builder = match self.clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let roots = Arc::new(authority.roots());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
                let verifier = verifier.build().unwrap();
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = CertificateDer::pem_slice_iter(self.identity.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.key.as_bytes()).unwrap();
        let key = provider.key_provider.load_private_key(key).unwrap();
        let certified = SingleCertAndKey::from(CertifiedKey::new(chain, key));
        let config = builder.with_cert_resolver(Arc::new(certified));
        Server {
            peer: runtime.accept(),
            tls: ServerConnection::new(Arc::new(config)).unwrap(),
            heard: Vec::new(),
            client_closed: false,
            input: BytesMut::new(),
        }
    }
}

/// The other end, with TLS.
pub(super) struct Server {
    pub(super) peer: Peer,
    pub(super) tls: ServerConnection,
    /// What the client said.
    pub(super) heard: Vec<u8>,
    /// Whether the client ended TLS in order.
    pub(super) client_closed: bool,
    input: BytesMut,
}

impl Server {
    /// Moves what there is to move. A handshake that fails is answered with its alert.
    pub(super) fn serve(&mut self) {
        self.input.unsplit(self.peer.received());
        while !self.input.is_empty() {
            let taken = self.tls.read_tls(&mut &self.input[..]).unwrap();
            self.input.advance(taken);
            let Ok(state) = self.tls.process_new_packets() else { break };
            let mut heard = vec![0; state.plaintext_bytes_to_read()];
            self.tls.reader().read_exact(&mut heard).unwrap();
            self.heard.append(&mut heard);
            self.client_closed |= state.peer_has_closed();
            if taken == 0 {
                break;
            }
        }
        while self.tls.wants_write() {
            let mut out = Vec::new();
            self.tls.write_tls(&mut out).unwrap();
            self.peer.send(&out);
        }
    }

    pub(super) fn say(&mut self, mut words: &[u8]) {
        while !words.is_empty() {
            let count = self.tls.writer().write(words).unwrap();
            words = &words[count..];
            self.serve();
        }
    }
}

/// A transport that moves a few bytes at a time, and makes everybody wait before each step.
pub(super) struct Hesitant {
    inner: Memory,
    piece: usize,
    /// Whether the last call of each kind was made to wait.
    waited: [bool; 4],
}

impl Hesitant {
    /// Over `inner`, at most `piece` bytes at a time.
    pub(super) fn new(inner: Memory, piece: usize) -> Self {
        Self { inner, piece, waited: [false; 4] }
    }

    /// Whether a call of this kind is to wait: every other one is.
    fn waits(&mut self, kind: usize, cx: &Context<'_>) -> bool {
        self.waited[kind] = !self.waited[kind];
        if self.waited[kind] {
            cx.waker().wake_by_ref();
        }
        self.waited[kind]
    }
}

impl Transport for Hesitant {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        if self.waits(0, cx) {
            return Poll::Pending;
        }
        let mut piece = BytesMut::with_capacity(self.piece);
        let read = self.inner.poll_read(cx, &mut piece);
        input.extend_from_slice(&piece);
        read
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.waits(1, cx) {
            return Poll::Pending;
        }
        let first = output.iter().find(|slice| !slice.is_empty()).unwrap();
        let piece = &first[..first.len().min(self.piece)];
        self.inner.poll_write(cx, &[IoSlice::new(piece)])
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waits(2, cx) { Poll::Pending } else { self.inner.poll_flush(cx) }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waits(3, cx) { Poll::Pending } else { self.inner.poll_close(cx) }
    }
}

/// Agrees on TLS with the server that `host` is, over a transport that `around` makes of the connected one.
pub(super) fn agree<T: Transport>(
    runtime: &MemoryRuntime,
    server: &mut Server,
    host: &str,
    tls: TlsConfig,
    around: impl FnOnce(Memory) -> T,
) -> Result<TlsStream<T>, TlsFailure> {
    let client = TlsConfigs::default().client(&Arc::new(tls), host)?;
    let memory = runtime.block_on(runtime.connect(&Endpoint::new(host, 5671))).unwrap();
    let mut agreeing = Box::pin(client.handshake(around(memory)));
    for _ in 0..100_000 {
        if let Poll::Ready(result) = runtime.poll(&mut agreeing) {
            server.serve();
            return result;
        }
        server.serve();
    }
    panic!("they never agree");
}

/// Reads once; an empty answer is the end.
pub(super) fn read<T: Transport>(
    runtime: &MemoryRuntime,
    stream: &mut TlsStream<T>,
) -> Poll<io::Result<Vec<u8>>> {
    let mut input = BytesMut::with_capacity(4096);
    let mut reading = poll_fn(|cx| stream.poll_read(cx, &mut input));
    match runtime.poll(&mut reading) {
        Poll::Ready(Ok(count)) => {
            assert_eq!(count, input.len());
            Poll::Ready(Ok(input.to_vec()))
        }
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => {
            assert!(input.is_empty(), "what is read is told");
            Poll::Pending
        }
    }
}
