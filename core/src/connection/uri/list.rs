//! Several URIs: the servers to try, in order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::parse::FromText;
use super::{Uri, UriError};

/// One or more URIs, in the order in which they are tried. Each is whole: with its own credentials, virtual host and
/// parameters.
///
/// As text they are separated by commas, with or without spaces and line breaks around: `amqp://a,amqp://b`. A comma that
/// no scheme and `://` follow belongs to the URI, so that a password may have one. A
/// [session](crate::session::SessionConfig) is within one virtual host of one cluster, so it takes a list only if its
/// URIs differ in nothing but host, port and TLS: [`UriList::agreed`].
///
/// `Debug` and `Display` leave the passwords out.
///
/// ```
/// # use leveret_core::connection::UriList;
/// let list = UriList::parse("amqp://ada:s%23cret@one.example,\n amqp://ada:s%23cret@two.example:5673")?;
/// let hosts: Vec<_> = list.iter().map(|uri| (uri.host(), uri.port())).collect();
/// assert_eq!(hosts, [("one.example", 5672), ("two.example", 5673)]);
/// # Ok::<(), leveret_core::connection::UriListError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriList {
    first: Uri,
    others: Vec<Uri>,
}

impl UriList {
    /// Reads a list; the text of one URI is a list of one.
    ///
    /// # Errors
    ///
    /// [`UriListError::Empty`], or [`UriListError::Uri`] for the first that is wrong.
    pub fn parse(text: &str) -> Result<Self, UriListError> {
        let pieces: Vec<&str> = split(text).collect();
        let mut uris = Vec::with_capacity(pieces.len());
        for (index, piece) in pieces.iter().enumerate() {
            let uri = Uri::parse(piece).map_err(|error| {
                // A password may hold what looks like the next URI, and then the `@` behind it is in a later piece.
                let is_cut = pieces[index + 1..].iter().any(|later| later.contains('@'));
                let error = if is_cut { error.without_words() } else { error };
                UriListError::Uri { position: index + 1, error }
            });
            uris.push(uri?);
        }
        Self::new(uris)
    }

    /// A list of URIs.
    ///
    /// # Errors
    ///
    /// [`UriListError::Empty`].
    pub fn new(uris: impl IntoIterator<Item = Uri>) -> Result<Self, UriListError> {
        let mut uris = uris.into_iter();
        let first = uris.next().ok_or(UriListError::Empty)?;
        Ok(Self { first, others: uris.collect() })
    }

    /// The one that is tried first.
    #[must_use]
    pub const fn first(&self) -> &Uri {
        &self.first
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Uri> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The first URI, if the others differ from it in nothing but host, port and TLS, so that it speaks for all.
    ///
    /// # Errors
    ///
    /// [`UriListError::Differs`], which names the first other one and the first part.
    pub fn agreed(&self) -> Result<&Uri, UriListError> {
        let first = &self.first;
        for (index, other) in self.others.iter().enumerate() {
            let parts = [
                ("user name, password or auth_mechanism", first.credentials == other.credentials),
                ("virtual host", first.virtual_host == other.virtual_host),
                ("heartbeat", first.heartbeat == other.heartbeat),
                ("connection_timeout", first.connection_timeout == other.connection_timeout),
                ("channel_max", first.channel_max == other.channel_max),
                ("frame_max", first.frame_max == other.frame_max),
            ];
            if let Some((part, _)) = parts.into_iter().find(|(_, same)| !same) {
                return Err(UriListError::Differs { position: index + 2, part });
            }
        }
        Ok(first)
    }
}

impl From<Uri> for UriList {
    fn from(first: Uri) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl FromStr for UriList {
    type Err = UriListError;

    fn from_str(text: &str) -> Result<Self, UriListError> {
        Self::parse(text)
    }
}

impl fmt::Display for UriList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.first, f)?;
        self.others.iter().try_for_each(|uri| write!(f, ",{uri}"))
    }
}

/// From a string. There is no `Serialize`: it would write the passwords.
impl<'de> Deserialize<'de> for UriList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(FromText { expected: "a list of AMQP URIs", parse: Self::parse })
    }
}

/// The URIs of a list as text.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text.trim()).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let ends = text.match_indices(',').map(|(at, _)| at);
        let end = ends.into_iter().find(|at| begins_a_uri(text[at + 1..].trim_start()));
        let (uri, after) = end.map_or((text, None), |at| (&text[..at], Some(text[at + 1..].trim_start())));
        rest = after;
        Some(uri.trim_end())
    })
}

/// Whether a scheme comes first, also one that is wrong: it is to be named by its place in the list.
fn begins_a_uri(text: &str) -> bool {
    let is_part_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let rest = text.trim_start_matches(is_part_of_scheme);
    rest.len() < text.len() && rest.starts_with("://")
}

/// What is wrong with a list of URIs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriListError {
    /// There is none.
    Empty,
    /// One is wrong.
    Uri {
        /// Its place in the list, from 1 on.
        position: usize,
        /// What is wrong with it.
        error: UriError,
    },
    /// One differs from the first in what must be the same.
    Differs {
        /// Its place in the list, from 2 on.
        position: usize,
        /// What differs.
        part: &'static str,
    },
}

impl fmt::Display for UriListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no URI: write at least one, such as amqp://localhost"),
            Self::Uri { position, error } => write!(f, "URI {position} of the list: {error}"),
            Self::Differs { position, part } => write!(
                f,
                "URI {position} of the list has another {part} than the first: all must name one virtual host of one cluster and the same parameters"
            ),
        }
    }
}

impl std::error::Error for UriListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Uri { error, .. } => Some(error),
            Self::Empty | Self::Differs { .. } => None,
        }
    }
}
