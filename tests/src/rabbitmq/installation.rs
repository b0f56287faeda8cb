//! Where a RabbitMQ server's programs are, and how one of them is run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::host::setting;
use super::leash::script;

/// Where the Debian and RPM packages put the programs themselves. Those in `/usr/sbin` are wrappers that change to
/// another user and to the system's own node.
const PACKAGED: &str = "/usr/lib/rabbitmq/bin";

/// A RabbitMQ that this machine has, to be started as often as wanted: [`RealBroker::start`].
///
/// [`RealBroker::start`]: super::RealBroker::start
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    programs: PathBuf,
    root: Option<PathBuf>,
}

impl Installation {
    /// The machine's own: from its packages, else the `rabbitmq-server` on the `PATH`.
    #[must_use]
    pub fn local() -> Option<Self> {
        let path = setting("PATH").unwrap_or_default();
        let directories = std::iter::once(PathBuf::from(PACKAGED)).chain(std::env::split_paths(&path));
        directories
            .map(|programs| Self { programs, root: None })
            .find(|installation| installation.programs.join("rabbitmq-server").is_file())
    }

    /// The one in the directory that `LEVERET_RABBITMQ4_ROOT` names, made by `tests/rabbitmq4.sh install`.
    #[must_use]
    pub fn version_4() -> Option<Self> {
        let root = PathBuf::from(setting("LEVERET_RABBITMQ4_ROOT")?);
        Some(Self { programs: PathBuf::from(PACKAGED), root: Some(root) })
    }

    /// `dir` as the server sees it.
    pub(super) fn inside(&self, dir: &Path) -> PathBuf {
        match self.root {
            Some(_) => PathBuf::from("/mnt"),
            None => dir.to_owned(),
        }
    }

    /// One of its programs, as a path for [`Installation::command`].
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// The words that run what is appended to them where the server's programs are and `dir` is visible.
    pub(super) fn command(&self, dir: &Path) -> Command {
        match &self.root {
            Some(root) => {
                let mut command = script("rabbitmq4.sh");
                command.arg("enter").arg(root).arg(dir);
                command
            }
            None => Command::new("env"),
        }
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Some(root) => write!(f, "the RabbitMQ in {}", root.display()),
            None => write!(f, "the RabbitMQ of {}", self.programs.display()),
        }
    }
}
