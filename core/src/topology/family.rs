//! The names of what belongs to one job queue: derived from its name, and read back for tools.

use std::fmt;

use super::name::{NameError, NameKind, QueueName, check};
use crate::delay::{HoldKind, HoldTtl};
use crate::text::ShortString;

#[cfg(test)]
mod tests;

/// The longest suffix of hold queues, in bytes: a dot and ten digits follow it.
pub const HOLD_SUFFIX_MAX: usize = ".deferred".len();

/// What stands between the name of a job queue and the names of what belongs to it.
///
/// The defaults are wire format: services that share a queue must agree on all of them.
///
/// | | default | name |
/// |---|---|---|
/// | dead letters | `.dead` | `q.dead` |
/// | expiring holds | `.deferred` | `q.deferred.30000` |
/// | replicated holds | `.held` | `q.held.30000` |
/// | waiting queue | `.retry` | `q.retry` |
/// | delayed exchange | `.delay` | `q.delay` |
///
/// ```
/// # use leveret_core::topology::{QueueName, Suffixes};
/// let suffixes = Suffixes::DEFAULT.with_dead("-graveyard")?;
/// assert_eq!(suffixes.dead(&QueueName::new("shop.emails")?), "shop.emails-graveyard");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suffixes {
    dead: ShortString,
    expiring: ShortString,
    replicated: ShortString,
    waiting: ShortString,
    delayed_exchange: ShortString,
}

impl Suffixes {
    /// The suffixes of the wire format.
    pub const DEFAULT: Self = Self {
        dead: ShortString::from_static(".dead"),
        expiring: ShortString::from_static(".deferred"),
        replicated: ShortString::from_static(".held"),
        waiting: ShortString::from_static(".retry"),
        delayed_exchange: ShortString::from_static(".delay"),
    };

    /// The same suffixes with another one for dead-letter queues, 1 to 20 bytes.
    ///
    /// # Errors
    ///
    /// [`SuffixError`] when it is no suffix, or makes two names the same.
    pub fn with_dead(self, suffix: impl AsRef<str>) -> Result<Self, SuffixError> {
        Self { dead: checked(suffix.as_ref())?, ..self }.distinct()
    }

    /// The same suffixes with another one for hold queues of a kind, 1 to 9 bytes. A dot and the TTL follow it.
    ///
    /// # Errors
    ///
    /// [`SuffixError`] when it is no suffix, or makes two names the same.
    pub fn with_hold(self, kind: HoldKind, suffix: impl AsRef<str>) -> Result<Self, SuffixError> {
        let suffix = checked(suffix.as_ref())?;
        if suffix.len() > HOLD_SUFFIX_MAX {
            return Err(SuffixError::HoldTooLong { suffix });
        }
        match kind {
            HoldKind::Expiring => Self { expiring: suffix, ..self },
            HoldKind::Replicated => Self { replicated: suffix, ..self },
        }
        .distinct()
    }

    /// The same suffixes with another one for waiting queues, 1 to 20 bytes.
    ///
    /// # Errors
    ///
    /// [`SuffixError`] when it is no suffix, or makes two names the same.
    pub fn with_waiting(self, suffix: impl AsRef<str>) -> Result<Self, SuffixError> {
        Self { waiting: checked(suffix.as_ref())?, ..self }.distinct()
    }

    /// The same suffixes with another one for delayed exchanges, 1 to 20 bytes.
    ///
    /// # Errors
    ///
    /// [`SuffixError`] when it is no suffix, or makes two names the same.
    pub fn with_delayed_exchange(self, suffix: impl AsRef<str>) -> Result<Self, SuffixError> {
        Self { delayed_exchange: checked(suffix.as_ref())?, ..self }.distinct()
    }

    /// The dead-letter queue: `q.dead`.
    #[must_use]
    pub fn dead(&self, queue: &QueueName) -> ShortString {
        derived(format_args!("{queue}{}", self.dead))
    }

    /// The hold queue for one delay: `q.deferred.{ttl in milliseconds}`, or `q.held.{ttl in milliseconds}`.
    #[must_use]
    pub fn hold(&self, queue: &QueueName, kind: HoldKind, ttl: HoldTtl) -> ShortString {
        derived(format_args!("{queue}{}.{}", self.of_hold(kind), ttl.as_millis()))
    }

    /// The waiting queue: `q.retry`.
    #[must_use]
    pub fn waiting(&self, queue: &QueueName) -> ShortString {
        derived(format_args!("{queue}{}", self.waiting))
    }

    /// The delayed-message exchange: `q.delay`.
    #[must_use]
    pub fn delayed_exchange(&self, queue: &QueueName) -> ShortString {
        derived(format_args!("{queue}{}", self.delayed_exchange))
    }

    /// Whether a name ends like a hold queue: a suffix of holds, a dot, and digits. A job queue of that name
    /// could be the hold queue of another.
    #[must_use]
    pub fn looks_like_hold(&self, name: &str) -> bool {
        self.split_hold(name).is_some()
    }

    /// Whether a name with this suffix could end like a hold queue, also together with the end of what is in front
    /// of it: with `.5`, the queue `q.deferred` would have the family of `q` in its own.
    fn could_end_a_hold(&self, suffix: &str) -> bool {
        let front = suffix.trim_end_matches(|c: char| c.is_ascii_digit());
        if front.len() == suffix.len() {
            return false;
        }
        match front.strip_suffix('.') {
            None => front.is_empty(),
            Some(front) => [&self.expiring, &self.replicated]
                .into_iter()
                .any(|hold| hold.ends_with(front) || front.ends_with(hold.as_str())),
        }
    }

    fn of_hold(&self, kind: HoldKind) -> &ShortString {
        match kind {
            HoldKind::Expiring => &self.expiring,
            HoldKind::Replicated => &self.replicated,
        }
    }

    /// The name before a suffix of holds, the kind, and the digits after the dot.
    fn split_hold<'a>(&self, name: &'a str) -> Option<(&'a str, HoldKind, &'a str)> {
        let (front, digits) = name.rsplit_once('.')?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        [HoldKind::Expiring, HoldKind::Replicated]
            .into_iter()
            .find_map(|kind| Some((front.strip_suffix(self.of_hold(kind).as_str())?, kind, digits)))
    }

    /// Refuses suffixes with which a name could be read in two ways.
    fn distinct(self) -> Result<Self, SuffixError> {
        let all = [&self.dead, &self.expiring, &self.replicated, &self.waiting, &self.delayed_exchange];
        for (at, suffix) in all.iter().enumerate() {
            let mut others = all.iter().enumerate().filter(|(other, _)| *other != at);
            let ends_alike = others.any(|(_, other)| suffix.ends_with(other.as_str()));
            if ends_alike || self.could_end_a_hold(suffix) {
                return Err(SuffixError::Ambiguous { suffix: (*suffix).clone() });
            }
        }
        Ok(self)
    }
}

impl Default for Suffixes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a queue or exchange is to the job queue it belongs to, read from its name. For tools that look at a
/// broker: the name alone decides nothing, since anybody may call a queue `q.dead`.
///
/// ```
/// # use leveret_core::delay::{HoldKind, HoldTtl};
/// # use leveret_core::topology::{FamilyMember, Role, Suffixes};
/// let member = FamilyMember::read("shop.emails.deferred.30000", &Suffixes::DEFAULT).expect("a hold queue");
/// assert_eq!(member.queue.as_str(), "shop.emails");
/// let ttl = HoldTtl::from_millis(30_000).expect("in range");
/// assert_eq!(member.role, Role::Hold { kind: HoldKind::Expiring, ttl });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyMember {
    /// The job queue.
    pub queue: QueueName,
    /// What belongs to it.
    pub role: Role,
}

/// What a queue or exchange is to its job queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The work queue itself, or any other queue.
    Work,
    /// The dead-letter queue.
    Dead,
    /// A hold queue.
    Hold {
        /// Which kind.
        kind: HoldKind,
        /// How long each of its messages waits.
        ttl: HoldTtl,
    },
    /// The waiting queue.
    Waiting,
    /// The delayed-message exchange.
    DelayedExchange,
}

impl FamilyMember {
    /// Reads a name; `None` for one that no job queue has and none derives, such as `amq.gen-1`,
    /// `q.deferred.0` or `q.deferred.01000`.
    #[must_use]
    pub fn read(name: &str, suffixes: &Suffixes) -> Option<Self> {
        let member = |queue: &str, role| Some(Self { queue: QueueName::new(queue).ok()?, role });
        if let Some((queue, kind, digits)) = suffixes.split_hold(name) {
            // A leading zero would read back as another name.
            let ttl =
                digits.parse().ok().filter(|_| !digits.starts_with('0')).and_then(HoldTtl::from_millis)?;
            return member(queue, Role::Hold { kind, ttl });
        }
        let fixed = [
            (&suffixes.dead, Role::Dead),
            (&suffixes.waiting, Role::Waiting),
            (&suffixes.delayed_exchange, Role::DelayedExchange),
        ];
        let read = fixed
            .into_iter()
            .filter_map(|(suffix, role)| Some((name.strip_suffix(suffix.as_str())?, role)))
            .find(|(queue, _)| !queue.is_empty());
        let (queue, role) = read.unwrap_or((name, Role::Work));
        member(queue, role)
    }

    /// The name that was read.
    #[must_use]
    pub fn name(&self, suffixes: &Suffixes) -> ShortString {
        match self.role {
            Role::Work => self.queue.as_short().clone(),
            Role::Dead => suffixes.dead(&self.queue),
            Role::Hold { kind, ttl } => suffixes.hold(&self.queue, kind, ttl),
            Role::Waiting => suffixes.waiting(&self.queue),
            Role::DelayedExchange => suffixes.delayed_exchange(&self.queue),
        }
    }
}

/// Why suffixes cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuffixError {
    /// It is no part of a name.
    Name(NameError),
    /// The suffix of hold queues is above [`HOLD_SUFFIX_MAX`].
    HoldTooLong {
        /// The suffix.
        suffix: ShortString,
    },
    /// It ends like another suffix, or looks like a hold queue.
    Ambiguous {
        /// The suffix.
        suffix: ShortString,
    },
}

impl fmt::Display for SuffixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::HoldTooLong { suffix } => write!(
                f,
                "the suffix {suffix:?} of hold queues has {} bytes, at most {HOLD_SUFFIX_MAX} leave room for a \
                 dot and the longest delay: shorten it",
                suffix.len()
            ),
            Self::Ambiguous { suffix } => write!(
                f,
                "with the suffix {suffix:?} one name could be read in two ways: let none end like another one, nor \
                 like a hold queue"
            ),
        }
    }
}

impl std::error::Error for SuffixError {}

fn checked(suffix: &str) -> Result<ShortString, SuffixError> {
    check(NameKind::Suffix, suffix).map_err(SuffixError::Name)
}

fn derived(name: fmt::Arguments<'_>) -> ShortString {
    let name = ShortString::format(name);
    debug_assert!(name.is_ok(), "names and suffixes are short enough for each other");
    name.unwrap_or_default()
}
