//! Files that can and that cannot be used, and what is said of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leveret_core::connection::{TlsConfig, TlsFailure, TlsFile, TlsFileProblem, Verification};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::super::TlsConfigs;
use super::world::{Authority, Files, Identity, with};

fn failure(tls: TlsConfig) -> TlsFailure {
    let failure = TlsConfigs::default().client(&Arc::new(tls), "broker.test").err();
    failure.expect("it cannot be used")
}

fn problem(tls: TlsConfig, wanted: TlsFile, at: &Path) -> TlsFileProblem {
    let failure = failure(tls);
    assert!(failure.is_permanent());
    let TlsFailure::File { file, path, problem } = failure else { panic!("{failure}") };
    assert_eq!((file, &*path), (wanted, at));
    problem
}

/// The same key as PEM that says it is encrypted.
fn encrypted(identity: &Identity) -> String {
    identity.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
}

#[test]
fn a_file_of_authorities_that_cannot_be_used_is_named() {
    let files = Files::new();
    let authority = Authority::new();
    let broken = authority.pem.replace("-----END", "-----AND");
    let no_certificate =
        authority.pem.lines().take(3).collect::<Vec<_>>().join("\n") + "\n-----END CERTIFICATE-----\n";
    for (content, wanted) in [
        ("", TlsFileProblem::NoCertificate),
        ("not PEM at all", TlsFileProblem::NoCertificate),
        (&Authority::new().issue(&["a.test"]).key, TlsFileProblem::NoCertificate),
        (&broken, TlsFileProblem::BrokenPem),
        ("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n", TlsFileProblem::BrokenPem),
        (&no_certificate, TlsFileProblem::BadCertificate),
    ] {
        let path = files.write("ca.pem", content);
        let tls = with(TlsConfig::default(), |tls| tls.ca_file = Some(path.clone()));
        assert_eq!(problem(tls, TlsFile::Authorities, &path), wanted, "{content}");
    }
    for path in [files.dir().join("missing.pem"), files.dir().to_owned()] {
        let tls = with(TlsConfig::default(), |tls| tls.ca_file = Some(path.clone()));
        let problem = problem(tls, TlsFile::Authorities, &path);
        assert!(matches!(problem, TlsFileProblem::Unreadable { .. }), "{problem:?}");
    }
}

#[test]
fn a_file_without_end_is_not_read_to_it() {
    let path = Path::new("/dev/zero");
    if path.exists() {
        let tls = with(TlsConfig::default(), |tls| tls.ca_file = Some(path.to_owned()));
        assert!(matches!(problem(tls, TlsFile::Authorities, path), TlsFileProblem::TooLarge { .. }));
    }
}

#[test]
fn a_client_certificate_that_cannot_be_used_is_named_by_the_file_to_mend() {
    let files = Files::new();
    let authority = Authority::new();
    let (ada, bob) = (authority.issue(&["ada"]), authority.issue(&["bob"]));
    let cut: String = ada.key.lines().take(2).map(|line| format!("{line}\n")).collect();
    let short = format!("{cut}-----END PRIVATE KEY-----\n");
    let traditional = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    let use_files = |certificate: &str, key: &str| {
        let identity = Identity { certificate: certificate.to_owned(), key: key.to_owned() };
        let ours = files.client_certificate(&identity);
        (with(files.trusting(&authority), |tls| tls.client_certificate = Some(ours.clone())), ours)
    };
    for (key, wanted) in [
        ("", TlsFileProblem::NoKey),
        (&*ada.certificate, TlsFileProblem::NoKey),
        (&*encrypted(&ada), TlsFileProblem::EncryptedKey),
        (traditional, TlsFileProblem::EncryptedKey),
        (&*cut, TlsFileProblem::BrokenPem),
        (&*short, TlsFileProblem::BadKey),
        (&*bob.key, TlsFileProblem::OtherKey),
    ] {
        let (tls, ours) = use_files(&ada.certificate, key);
        assert_eq!(problem(tls, TlsFile::Key, &ours.key_file), wanted, "{wanted:?}");
    }
    let (tls, ours) = use_files(&ada.key, &ada.key);
    assert_eq!(problem(tls, TlsFile::Certificate, &ours.cert_file), TlsFileProblem::NoCertificate);
}

#[test]
fn a_certificate_and_its_key_may_be_in_one_file() {
    let files = Files::new();
    let authority = Authority::new();
    let ada = authority.issue(&["ada"]);
    let both = format!("{}{}", ada.certificate, ada.key);
    let mut ours = files.client_certificate(&ada);
    ours.cert_file = files.write("both.pem", both);
    ours.key_file = ours.cert_file.clone();
    let tls = with(files.trusting(&authority), |tls| tls.client_certificate = Some(ours));
    assert!(TlsConfigs::default().client(&Arc::new(tls), "broker.test").is_ok());
}

#[test]
fn files_are_read_once() {
    let files = Files::new();
    let tls = Arc::new(files.trusting(&Authority::new()));
    let mut configs = TlsConfigs::default();
    assert!(configs.client(&tls, "broker.test").is_ok());
    files.write("ca.pem", "");
    assert!(configs.client(&tls, "other.test").is_ok(), "also for another host");
    assert!(TlsConfigs::default().client(&tls, "broker.test").is_err(), "another client reads them anew");
}

#[test]
fn the_roots_of_the_system_are_there_or_their_lack_is_told() {
    match TlsConfigs::default().client(&Arc::new(TlsConfig::default()), "broker.test") {
        Ok(_) => {}
        Err(failure) => {
            assert!(matches!(failure, TlsFailure::NoSystemRoots { .. }), "{failure}");
            assert!(failure.to_string().contains("cacertfile"), "{failure}");
        }
    }
}

#[test]
fn a_name_that_no_certificate_can_be_for_is_told() {
    let tls = with(TlsConfig::default(), |tls| tls.server_name = Some("no host".to_owned()));
    assert_eq!(failure(tls), TlsFailure::ServerName { name: "no host".to_owned() });
}

#[test]
fn nothing_of_a_key_is_shown() {
    let files = Files::new();
    let authority = Authority::new();
    let ada = authority.issue(&["ada"]);
    let line = ada.key.lines().nth(1).unwrap();
    // Broken in every way that a key can be; each line but the first and the last is secret.
    let lines: Vec<&str> = ada.key.lines().collect();
    for broken in [
        encrypted(&ada),
        lines[..2].join("\n"),
        ada.key.replace("-----END", "----END"),
        ada.key.replace("-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY----- "),
        ada.key.replace('A', "?"),
        format!("-----BEGIN {}", lines[1]),
        ada.key.replace("PRIVATE KEY", "CERTIFICATE"),
    ] {
        let mut ours = files.client_certificate(&ada);
        for in_place_of in [&mut ours.key_file, &mut ours.cert_file] {
            *in_place_of = files.write("broken.key", &broken);
        }
        let tls = with(files.trusting(&authority), |tls| tls.client_certificate = Some(ours));
        let failure = failure(tls);
        let shown = format!("{failure} {failure:?}");
        for secret in [line, &line[..8], &line[line.len() - 8..]] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

/// Counts warnings.
struct Warnings(Arc<AtomicUsize>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target() == "leveret"
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_client_that_does_not_verify_is_warned_of_once() {
    let files = Files::new();
    let trusting = Arc::new(files.trusting(&Authority::new()));
    let unverified = Arc::new(with(TlsConfig::default(), |tls| tls.verification = Verification::None));
    let count = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(Warnings(count.clone()), || {
        let mut configs = TlsConfigs::default();
        assert!(configs.client(&trusting, "broker.test").is_ok());
        assert_eq!(count.load(Ordering::Relaxed), 0);
        for host in ["broker.test", "broker.test", "other.test"] {
            assert!(configs.client(&unverified, host).is_ok());
            assert_eq!(count.load(Ordering::Relaxed), 1);
        }
    });
}
