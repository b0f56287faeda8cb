//! Who connects, and by which SASL mechanism that is shown (AMQP 0-9-1, 2.2.4).
//!
//! | mechanism | needs | sends |
//! |---|---|---|
//! | [`Plain`](Mechanism::Plain) | user name, password | both, as RFC 4616 has it |
//! | [`AmqPlain`](Mechanism::AmqPlain) | user name, password | both, as a field table; AMQP's own form of PLAIN |
//! | [`External`](Mechanism::External) | nothing | nothing: the server looks at the client certificate of the TLS connection (plugin `rabbitmq_auth_mechanism_ssl`) |
//!
//! PLAIN and AMQPLAIN show the password to whoever can read the connection, and to the server: use them over TLS, or
//! within a trusted network. With OAuth2 the token is the password of PLAIN or AMQPLAIN, and the user name is not looked
//! at; [`Connection::update_secret`](super::Connection::update_secret) replaces it before it expires.

use std::fmt;

use crate::wire::method;

/// A way to show who we are, by its SASL name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mechanism {
    /// `PLAIN`
    Plain,
    /// `AMQPLAIN`
    AmqPlain,
    /// `EXTERNAL`
    External,
}

impl Mechanism {
    /// All that leveret speaks.
    pub const ALL: [Self; 3] = [Self::Plain, Self::AmqPlain, Self::External];

    /// The name that a server offers it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::AmqPlain => "AMQPLAIN",
            Self::External => "EXTERNAL",
        }
    }

    /// The mechanism of a name, in whatever case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name().eq_ignore_ascii_case(name))
    }

    /// Whether it takes a user name and a password.
    #[must_use]
    pub const fn needs_password(self) -> bool {
        !matches!(self, Self::External)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who connects, and the mechanisms to show it by, in the order in which they are wanted: the first that the server
/// offers is used. `Debug` shows neither the password nor its length, and there is no `Display`.
///
/// RabbitMQ hangs up on a login of more than 4,096 bytes (8,192 from 4.1 on) unless its `initial_frame_max` is raised,
/// which a long token can need.
///
/// ```
/// # use leveret_core::connection::{Credentials, Mechanism};
/// let ada = Credentials::new("ada", "hunter2");
/// assert_eq!(ada.mechanisms(), [Mechanism::Plain, Mechanism::AmqPlain]);
/// let ada = ada.with_mechanisms([Mechanism::External, Mechanism::Plain])?;
/// assert_eq!(ada.mechanisms(), [Mechanism::External, Mechanism::Plain]);
/// assert!(!format!("{ada:?}").contains("hunter2"));
/// # Ok::<(), leveret_core::connection::MechanismsError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    login: Option<Login>,
    /// Neither empty nor one of them twice; without a login only EXTERNAL.
    mechanisms: Vec<Mechanism>,
}

#[derive(Clone, PartialEq, Eq)]
struct Login {
    user: String,
    password: String,
}

impl Credentials {
    /// A user name and a password, for PLAIN or else AMQPLAIN.
    ///
    /// Neither can hold U+0000 for PLAIN, where it separates the two: such a login is refused by the server.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        let login = Login { user: user.into(), password: password.into() };
        Self { login: Some(login), mechanisms: vec![Mechanism::Plain, Mechanism::AmqPlain] }
    }

    /// No name and no password, for EXTERNAL: the client certificate says who connects.
    #[must_use]
    pub fn external() -> Self {
        Self { login: None, mechanisms: vec![Mechanism::External] }
    }

    /// The same, shown by these mechanisms in this order.
    ///
    /// # Errors
    ///
    /// [`MechanismsError`]: there is none, one comes twice, or one needs a password and these credentials have none.
    pub fn with_mechanisms(
        mut self,
        mechanisms: impl IntoIterator<Item = Mechanism>,
    ) -> Result<Self, MechanismsError> {
        self.mechanisms.clear();
        for mechanism in mechanisms {
            if self.mechanisms.contains(&mechanism) {
                return Err(MechanismsError::Twice { mechanism });
            }
            if mechanism.needs_password() && self.login.is_none() {
                return Err(MechanismsError::NeedsPassword { mechanism });
            }
            self.mechanisms.push(mechanism);
        }
        if self.mechanisms.is_empty() { Err(MechanismsError::None) } else { Ok(self) }
    }

    /// The user name; `None` where only a certificate says who connects.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.login.as_ref().map(|login| login.user.as_str())
    }

    /// The mechanisms, in the order in which they are wanted.
    #[must_use]
    pub fn mechanisms(&self) -> &[Mechanism] {
        &self.mechanisms
    }

    /// The same with an empty password, for what is shown or compared.
    #[must_use]
    pub fn without_password(mut self) -> Self {
        if let Some(login) = &mut self.login {
            login.password.clear();
        }
        self
    }

    /// Whether only a client certificate can say who connects.
    pub(super) fn is_external_only(&self) -> bool {
        self.mechanisms == [Mechanism::External]
    }

    /// User name and password.
    pub(super) fn login(&self) -> Option<(&str, &str)> {
        self.login.as_ref().map(|login| (login.user.as_str(), login.password.as_str()))
    }

    /// The first of the mechanisms that is among those offered, which are separated by spaces.
    pub(super) fn choose(&self, offered: &str) -> Option<Mechanism> {
        let is_offered = |wanted: &Mechanism| offered.split(' ').any(|offered| offered == wanted.name());
        self.mechanisms.iter().copied().find(is_offered)
    }

    /// What to answer by `mechanism`. It holds the password: it is never printed.
    pub(super) fn response(&self, mechanism: Mechanism) -> Vec<u8> {
        match (mechanism, self.login()) {
            (Mechanism::Plain, Some((user, password))) => format!("\0{user}\0{password}").into_bytes(),
            (Mechanism::AmqPlain, Some((user, password))) => method::amqplain_response(user, password),
            // An empty authorization identity: whoever the certificate says.
            (Mechanism::External, _) | (_, None) => Vec::new(),
        }
    }
}

impl Default for Credentials {
    /// `guest` with the password `guest`, which RabbitMQ accepts from its own machine.
    fn default() -> Self {
        Self::new("guest", "guest")
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user())
            .field("mechanisms", &self.mechanisms)
            .finish_non_exhaustive()
    }
}

/// Why credentials cannot be shown by a list of mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MechanismsError {
    /// The list is empty.
    None,
    /// One comes twice.
    Twice {
        /// The mechanism.
        mechanism: Mechanism,
    },
    /// One needs a user name and a password, and there are none.
    NeedsPassword {
        /// The mechanism.
        mechanism: Mechanism,
    },
}

impl fmt::Display for MechanismsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no SASL mechanism is given: name at least one"),
            Self::Twice { mechanism } => {
                write!(f, "the SASL mechanism {mechanism} is given twice: name it once")
            }
            Self::NeedsPassword { mechanism } => {
                write!(
                    f,
                    "the SASL mechanism {mechanism} needs a user name and a password, and there are none"
                )
            }
        }
    }
}

impl std::error::Error for MechanismsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_password_nor_its_length_is_printed() {
        let text = format!("{:?}", Credentials::new("ada", "hunter2"));
        assert!(text.contains("ada") && !text.contains("hunter2") && !text.contains('7'), "{text}");
    }

    #[test]
    fn the_first_of_ours_that_is_offered_is_chosen() {
        use Mechanism::{AmqPlain, External, Plain};
        let ada = Credentials::new("ada", "hunter2");
        assert_eq!(ada.choose("AMQPLAIN PLAIN"), Some(Plain));
        assert_eq!(ada.choose("AMQPLAIN"), Some(AmqPlain));
        assert_eq!(ada.choose("PLAINER plain  EXTERNAL"), None);
        assert_eq!(ada.choose(""), None);
        let ada = ada.with_mechanisms([External, AmqPlain, Plain]).unwrap();
        assert_eq!(ada.choose("PLAIN AMQPLAIN EXTERNAL"), Some(External));
        assert_eq!(ada.choose("PLAIN AMQPLAIN"), Some(AmqPlain));
    }

    #[test]
    fn a_list_that_cannot_be_is_refused() {
        use Mechanism::{External, Plain};
        let ada = || Credentials::new("ada", "hunter2");
        assert_eq!(ada().with_mechanisms([]), Err(MechanismsError::None));
        assert_eq!(
            ada().with_mechanisms([Plain, External, Plain]),
            Err(MechanismsError::Twice { mechanism: Plain })
        );
        assert_eq!(
            Credentials::external().with_mechanisms([External, Plain]),
            Err(MechanismsError::NeedsPassword { mechanism: Plain })
        );
    }

    #[test]
    fn each_mechanism_has_its_own_form_of_the_answer() {
        let ada = Credentials::new("ada", "hunter2");
        assert_eq!(ada.response(Mechanism::Plain), b"\0ada\0hunter2");
        let table = b"\x05LOGINS\0\0\0\x03ada\x08PASSWORDS\0\0\0\x07hunter2";
        assert_eq!(ada.response(Mechanism::AmqPlain), table);
        assert_eq!(ada.response(Mechanism::External), b"");
        assert_eq!(Credentials::external().response(Mechanism::External), b"");
    }
}
