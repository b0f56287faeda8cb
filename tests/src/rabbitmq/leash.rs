//! A process that cannot outlive the one that started it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Runs a command under a script of this crate's folder that does its part once its standard input ends: when this
/// value is dropped, and also when the process that holds it panics, exits or is killed.
pub(super) struct Leash(Child);

impl Leash {
    /// Starts `script` (a file of this crate's folder) as `command` describes: arguments and environment.
    ///
    /// # Errors
    ///
    /// Where `bash` cannot be started.
    pub(super) fn tie(mut command: Command) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Out of reach of a Ctrl-C, which would end the script before it has cleaned up.
            .process_group(0);
        command.spawn().map(Self)
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself now; a failure to wait means that it is gone already.
        let _ = self.0.wait();
    }
}

/// `bash` with a script of this crate's folder.
pub(super) fn script(name: &str) -> Command {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut command = Command::new("bash");
    command.arg(path);
    command
}
