//! rustls's configuration, from what the endpoint says.

use std::path::Path;
use std::sync::Arc;

use leveret_core::connection::{
    ClientCertificate, TlsConfig, TlsFailure, TlsFile, TlsFileProblem, Verification,
};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore};

use super::any_server::AnyServer;
use super::files::{certificates, key};

/// Makes the configuration. Reads files.
pub(super) fn make(tls: &TlsConfig) -> Result<ClientConfig, TlsFailure> {
    // Named here, so that it is neither the program's choice of a default nor a panic where that has none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFailure::Unusable { reason: error.to_string() })?;
    let builder = match tls.verification {
        Verification::Peer => builder.with_root_certificates(match &tls.ca_file {
            Some(path) => given_roots(path)?,
            None => system_roots()?,
        }),
        Verification::None => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer::new(provider)))
        }
    };
    match &tls.client_certificate {
        None => Ok(builder.with_no_client_auth()),
        Some(ours) => {
            let chain = certificates(TlsFile::Certificate, &ours.cert_file)?;
            let key = key(&ours.key_file)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| unusable_pair(ours, &error))
        }
    }
}

fn given_roots(path: &Path) -> Result<RootCertStore, TlsFailure> {
    let file = TlsFile::Authorities;
    let mut roots = RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(certificates(file, path)?);
    if added == 0 {
        return Err(failure(file, path, TlsFileProblem::BadCertificate));
    }
    if ignored > 0 {
        tracing::warn!(target: "leveret", cacertfile = %path.display(), ignored, "some certificates cannot be understood");
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsFailure> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = found.errors.first().map(ToString::to_string);
        return Err(TlsFailure::NoSystemRoots { reason });
    }
    Ok(roots)
}

/// Which of the two files a certificate and a key that do not go together are to be mended in.
fn unusable_pair(ours: &ClientCertificate, error: &rustls::Error) -> TlsFailure {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            failure(TlsFile::Key, &ours.key_file, TlsFileProblem::OtherKey)
        }
        rustls::Error::InvalidCertificate(_) => {
            failure(TlsFile::Certificate, &ours.cert_file, TlsFileProblem::BadCertificate)
        }
        _ => failure(TlsFile::Key, &ours.key_file, TlsFileProblem::BadKey),
    }
}

pub(super) fn failure(file: TlsFile, path: &Path, problem: TlsFileProblem) -> TlsFailure {
    TlsFailure::File { file, path: path.to_owned(), problem }
}
