//! RabbitMQ in a container, where a Docker engine answers.

use std::process::Command;
use std::time::Duration;

use testcontainers::core::{ExecCommand, IntoContainerPort as _, WaitFor};
use testcontainers::runners::SyncRunner as _;
use testcontainers::{GenericImage, ImageExt as _, TestcontainersError};

use super::RealBrokerError;
use super::leash::Leash;
use crate::skip::say;

/// How long the image may take to be fetched and to come up.
const START: Duration = Duration::from_secs(300);

const AMQP: u16 = 5672;

/// A running container. It is removed when this is dropped, or when the process ends.
pub(super) struct Container {
    running: testcontainers::Container<GenericImage>,
    address: String,
    /// Brokers that a whole process shares are never dropped, and then testcontainers removes nothing.
    _leash: Leash,
}

impl Container {
    /// Starts `image` and waits until it takes connections; `None`, with a word to the user, without an engine.
    pub(super) fn start(image: &str) -> Result<Option<Self>, RealBrokerError> {
        match apart(|| run(image)) {
            Ok((running, address)) => {
                let leash = remove_at_the_end(running.id()).map_err(RealBrokerError::io("run bash"))?;
                Ok(Some(Self { running, address, _leash: leash }))
            }
            Err(TestcontainersError::Client(cause)) => {
                say(format_args!("no container of {image} ({cause}): looking for RabbitMQ on this machine"));
                Ok(None)
            }
            Err(other) => Err(RealBrokerError::Start {
                installation: format!("a container of {image}"),
                problem: other.to_string(),
                output: String::new(),
            }),
        }
    }

    /// Where it takes AMQP connections: `host:port`.
    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    /// Runs `rabbitmqctl` in it and gives what that printed.
    pub(super) fn ctl(&self, arguments: &[&str]) -> Result<String, RealBrokerError> {
        let words = std::iter::once("rabbitmqctl").chain(arguments.iter().copied()).map(str::to_owned);
        let command = ExecCommand::new(words.collect::<Vec<_>>());
        let failed = |output| RealBrokerError::Control { command: arguments.join(" "), output };
        apart(|| {
            let mut done = self.running.exec(command)?;
            let (out, err) = (done.stdout_to_vec()?, done.stderr_to_vec()?);
            Ok((done.exit_code()?, text(&out), text(&err)))
        })
        .map_err(|error: TestcontainersError| failed(error.to_string()))
        .and_then(|(code, out, err)| if code == Some(0) { Ok(out) } else { Err(failed(out + &err)) })
    }
}

fn run(image: &str) -> Result<(testcontainers::Container<GenericImage>, String), TestcontainersError> {
    let (name, tag) = name_and_tag(image);
    let running = GenericImage::new(name, tag)
        .with_exposed_port(AMQP.tcp())
        .with_wait_for(WaitFor::message_on_stdout("Server startup complete"))
        .with_startup_timeout(START)
        .start()?;
    let address = format!("{}:{}", running.get_host()?, running.get_host_port_ipv4(AMQP)?);
    Ok((running, address))
}

/// Splits `registry:5000/name:tag`; without a tag it is `latest`, as everywhere.
pub(super) fn name_and_tag(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

/// Runs `work` on a thread of its own: testcontainers blocks on a runtime, which panics inside of another one, and
/// many tests run inside of one.
fn apart<T: Send>(
    work: impl FnOnce() -> Result<T, TestcontainersError> + Send,
) -> Result<T, TestcontainersError> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(TestcontainersError::other("the client for Docker panicked")))
}

fn remove_at_the_end(id: &str) -> std::io::Result<Leash> {
    let mut command = Command::new("bash");
    command.args(["-c", "while read -r _; do :; done; docker rm --force \"$0\"", id]);
    Leash::tie(command)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
