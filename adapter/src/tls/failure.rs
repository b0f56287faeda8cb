//! What rustls's errors mean, and what to do about them.

use leveret_core::connection::{PlainPeer, TlsFailure};
use rustls::{AlertDescription, CertificateError, Error};

use crate::text::bounded;

/// Why a handshake failed with the server that must show a certificate for `name`, and whose first bytes were
/// `opening`.
pub(super) fn of_handshake(error: &Error, name: &str, opening: &[u8]) -> TlsFailure {
    match error {
        Error::InvalidMessage(_) if !is_tls(opening) => TlsFailure::NotTls { peer: PlainPeer::of(opening) },
        Error::InvalidCertificate(error) => {
            TlsFailure::Certificate { name: name.to_owned(), reason: certificate(error) }
        }
        Error::AlertReceived(alert) => TlsFailure::Refused { reason: refusal(*alert) },
        other => TlsFailure::Protocol { reason: bounded(format_args!("{other}")) },
    }
}

/// Why a connection that had TLS failed. With TLS 1.3 a server judges our certificate, or that there is none, only when
/// the handshake is over for us.
pub(super) fn of_connection(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => TlsFailure::Refused { reason: refusal(*alert) }.to_string(),
        other => bounded(format_args!("TLS failed: {other}")),
    }
}

/// Whether a record of TLS can begin like this: a content type (RFC 8446, 5.1), then a version whose first byte has been
/// 3 since SSL 3.0.
fn is_tls(opening: &[u8]) -> bool {
    matches!(opening, [20..=24, 3, ..])
}

fn certificate(error: &CertificateError) -> String {
    let advice = match error {
        CertificateError::UnknownIssuer => {
            return "no authority that is trusted here has signed it: give the server's authority as cacertfile"
                .to_owned();
        }
        // Such as after an authority was made anew with its old name.
        CertificateError::BadSignature => {
            return "it is not signed by the authority of that name that is trusted here: give the server's authority \
                    as cacertfile"
                .to_owned();
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it must be renewed on the server, if the clock is right here"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is the clock right, here and there?"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "connect by a name that it is for, or give one as server_name_indication"
        }
        _ => "the server needs another certificate",
    };
    bounded(format_args!("{error}; {advice}"))
}

fn refusal(alert: AlertDescription) -> String {
    let meaning = match alert {
        AlertDescription::CertificateRequired => {
            "it asks for a client certificate: give certfile and keyfile"
        }
        AlertDescription::HandshakeFailure => {
            "it may ask for a client certificate (certfile and keyfile), or have no version and cipher in common with us"
        }
        AlertDescription::UnknownCA => "it does not trust the authority that signed our client certificate",
        AlertDescription::CertificateExpired => "our client certificate has expired",
        AlertDescription::CertificateRevoked => "our client certificate was revoked",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => "it does not accept our client certificate",
        AlertDescription::UnrecognisedName => {
            "it does not know the name that it is called by: give another as server_name_indication"
        }
        AlertDescription::ProtocolVersion => "it speaks neither TLS 1.2 nor 1.3",
        _ => return format!("alert {alert:?}; its log says more"),
    };
    format!("{meaning} (alert {alert:?})")
}
