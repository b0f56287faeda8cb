//! The servers of this suite, each with certificates of its own.

use std::fmt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use leveret_testkit::rabbitmq::{Installation, RealBroker, TlsListener, needed_installations};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// What a listener asks of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    /// They may show a certificate.
    May,
    /// They must.
    Must,
}

/// A server, and what it takes to connect to it. Its certificate is for `localhost` and `127.0.0.1`.
pub(crate) struct Site {
    pub(crate) broker: RealBroker,
    pub(crate) clients: Clients,
    /// The authority that signed everybody's certificate.
    pub(crate) ca_file: PathBuf,
    /// Another one of the same kind.
    pub(crate) other_ca_file: PathBuf,
    dir: PathBuf,
}

/// Each RabbitMQ of this machine, once with each way to ask clients. They are shared by all tests of this process.
pub(crate) fn sites() -> &'static [Site] {
    static SITES: OnceLock<Vec<Site>> = OnceLock::new();
    let installations = needed_installations();
    SITES.get_or_init(|| {
        std::thread::scope(|scope| {
            let start = |installation, clients| scope.spawn(move || Site::start(installation, clients));
            let starting: Vec<_> = installations
                .iter()
                .flat_map(|installation| {
                    [start(installation, Clients::May), start(installation, Clients::Must)]
                })
                .collect();
            starting
                .into_iter()
                .map(|site| site.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    })
}

impl Site {
    fn start(installation: &Installation, clients: Clients) -> Self {
        let (authority, other) = (Authority::new("leveret's"), Authority::new("somebody's"));
        let (certificate, key) = authority.issue("broker", &["localhost", "127.0.0.1"]);
        let mut listener = TlsListener::new(&authority.pem, &certificate, &key);
        if clients == Clients::Must {
            listener = listener.requiring_certificates();
        }
        let broker = RealBroker::start_with_tls(installation, &listener).expect("the broker starts");
        let dir = broker.dir().expect("the suite started it").join("clients");
        std::fs::create_dir(&dir).expect("a directory");
        broker.ctl(&["add_user", "ada", "her password"]).expect("a user");
        broker.ctl(&["set_permissions", "ada", ".*", ".*", ".*"]).expect("permissions");
        let site = Self {
            broker,
            clients,
            ca_file: dir.join("ca.pem"),
            other_ca_file: dir.join("other_ca.pem"),
            dir,
        };
        site.write("ca.pem", &authority.pem);
        site.write("other_ca.pem", &other.pem);
        for user in ["ada", "stranger"] {
            let (certificate, key) = authority.issue(user, &[]);
            site.write(&format!("{user}.pem"), &certificate);
            site.write(&format!("{user}.key"), &key);
        }
        site
    }

    /// The URI of its TLS listener on `host`, with these parameters.
    pub(crate) fn uri(&self, host: &str, parameters: &[(&str, &Path)]) -> String {
        let port = self.broker.tls_port().expect("it has a TLS listener");
        let parameters: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{name}={}", value.display())).collect();
        format!("amqps://guest:guest@{host}:{port}/%2f?{}", parameters.join("&"))
    }

    /// The name of a new virtual host, and the URI of the TLS listener for it.
    pub(crate) fn vhost(&self) -> (String, String) {
        let plain = self.broker.vhost().expect("a virtual host");
        let (_, name) = plain.rsplit_once('/').expect("the path is the virtual host");
        let uri = self.uri("localhost", &[("cacertfile", &self.ca_file)]);
        (name.to_owned(), uri.replacen("/%2f", &format!("/{name}"), 1))
    }

    /// The same with the certificate of ada, who is a user of it.
    pub(crate) fn uri_of_ada(&self, parameters: &[(&str, &Path)]) -> String {
        let (certificate, key) = self.certificate_of("ada");
        let ours = [("cacertfile", &*self.ca_file), ("certfile", &certificate), ("keyfile", &key)];
        self.uri("localhost", &[&ours, parameters].concat())
    }

    /// The certificate and the key of somebody whom it does not know.
    pub(crate) fn stranger(&self) -> (PathBuf, PathBuf) {
        self.certificate_of("stranger")
    }

    fn certificate_of(&self, user: &str) -> (PathBuf, PathBuf) {
        (self.dir.join(format!("{user}.pem")), self.dir.join(format!("{user}.key")))
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.dir.join(name), content).expect("the file is written");
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RabbitMQ {}, clients {:?} show a certificate", self.broker.version(), self.clients)
    }
}

/// Who signs certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names to be wrong");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// The certificate of `who`, for these names and addresses, and its key.
    fn issue(&self, who: &str, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().copied().map(str::to_owned).collect();
        let mut params = CertificateParams::new(names).expect("good names");
        params.distinguished_name.push(DnType::CommonName, who);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        (certificate, key.serialize_pem())
    }
}
