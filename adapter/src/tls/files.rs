//! Certificates and keys, out of files in PEM form (RFC 7468).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use leveret_core::connection::{TlsFailure, TlsFile, TlsFileProblem};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::config::failure;

/// The most that is read of a file: some ten times the roots of a whole system.
const LARGEST: u64 = 4 << 20;

/// The certificates in a file, at least one.
pub(super) fn certificates(file: TlsFile, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFailure> {
    let text = read(file, path)?;
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(failure(file, path, TlsFileProblem::NoCertificate)),
        Ok(found) => Ok(found),
        Err(_) => Err(failure(file, path, TlsFileProblem::BrokenPem)),
    }
}

/// The first private key in a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFailure> {
    let text = read(TlsFile::Key, path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let problem = match error {
            _ if is_encrypted(&text) => TlsFileProblem::EncryptedKey,
            pem::Error::NoItemsFound => TlsFileProblem::NoKey,
            // What it says may quote the file, which holds a secret.
            _ => TlsFileProblem::BrokenPem,
        };
        failure(TlsFile::Key, path, problem)
    })
}

/// Whether a key is there that only a password opens: in the form of PKCS #8 (RFC 5958), or in OpenSSL's older one.
fn is_encrypted(text: &[u8]) -> bool {
    let has = |words: &[u8]| text.windows(words.len()).any(|found| found == words);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}

fn read(file: TlsFile, path: &Path) -> Result<Vec<u8>, TlsFailure> {
    let read = || -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut text)?;
        Ok(text)
    };
    match read() {
        Ok(text) if text.len() as u64 > LARGEST => {
            Err(failure(file, path, TlsFileProblem::TooLarge { limit: LARGEST }))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(failure(file, path, TlsFileProblem::Unreadable { text: error.to_string() })),
    }
}
