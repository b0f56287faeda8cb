//! One RabbitMQ server of our own: free ports, its own node name, cookie and directories, and a certain end.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::host::{setting, unique_name, wait_for};
use super::leash::{Leash, script};
use super::probe::{Greeting, greet};
use super::{Installation, RealBrokerError, TlsListener};

/// How long a server may take to come up. It takes five seconds on an idle core; suites share theirs.
const START: Duration = Duration::from_secs(120);

/// How often a server is started anew because another process took a port in the moment between choosing it and
/// binding it.
const PORT_ATTEMPTS: usize = 3;

/// The file that holds what the server printed, its log included.
const OUTPUT: &str = "output";

/// A running server. Dropping it kills the server, as a power cut would, and removes its directory.
pub(super) struct Server {
    installation: Installation,
    name: String,
    dir: PathBuf,
    ports: Ports,
    /// Holds the server's life; never read.
    _leash: Leash,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(super) fn start(
        installation: &Installation,
        tls: Option<&TlsListener>,
    ) -> Result<(Self, Greeting), RealBrokerError> {
        let mut attempt = 1;
        loop {
            match Self::attempt(installation, tls) {
                Err(RealBrokerError::Start { output, .. })
                    if port_taken(&output) && attempt < PORT_ATTEMPTS =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    fn attempt(
        installation: &Installation,
        tls: Option<&TlsListener>,
    ) -> Result<(Self, Greeting), RealBrokerError> {
        let name = unique_name("leveret");
        let dir = std::env::temp_dir().join(&name);
        let ports =
            Ports::free(tls.is_some()).map_err(RealBrokerError::io("find free ports on 127.0.0.1"))?;
        lay_out(&dir, &installation.inside(&dir), ports, tls)
            .map_err(RealBrokerError::io(format!("write {}", dir.display())))?;

        let mut launch = installation.command(&dir);
        // RabbitMQ would leave a port mapper of its own running behind; this one is its sibling and ends with it.
        launch
            .args(["sh", "-c", "epmd -port \"$ERL_EPMD_PORT\" -address 127.0.0.1 & exec \"$0\""])
            .arg(installation.program("rabbitmq-server"));
        let mut command = script("leash.sh");
        command.arg(&dir).arg(OUTPUT).arg(launch.get_program()).args(launch.get_args());
        set_environment(&mut command, installation, &dir, &name, ports);
        let leash = Leash::tie(command).map_err(RealBrokerError::io("run bash"))?;

        let server = Self { installation: installation.clone(), name, dir, ports, _leash: leash };
        let greeting = server.wait_until_it_answers()?;
        Ok((server, greeting))
    }

    /// Where it takes AMQP connections: `host:port`.
    pub(super) fn address(&self) -> String {
        address(self.ports.amqp)
    }

    /// Its directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The port where it takes AMQP over TLS, if it does.
    pub(super) const fn tls_port(&self) -> Option<u16> {
        self.ports.tls
    }

    /// Runs `rabbitmqctl` on it and gives what that printed.
    pub(super) fn ctl(&self, arguments: &[&str]) -> Result<String, RealBrokerError> {
        let mut command = self.installation.command(&self.dir);
        command.arg(self.installation.program("rabbitmqctl")).args(arguments);
        set_environment(&mut command, &self.installation, &self.dir, &self.name, self.ports);
        let output = command.output().map_err(RealBrokerError::io("run rabbitmqctl"))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(printed);
        }
        let output = printed + &String::from_utf8_lossy(&output.stderr);
        Err(RealBrokerError::Control { command: arguments.join(" "), output })
    }

    fn wait_until_it_answers(&self) -> Result<Greeting, RealBrokerError> {
        let address = self.address();
        let answer = wait_for(START, || {
            if self.dir.join("ended").exists() {
                return Some(Err("it ended by itself".to_owned()));
            }
            match greet(&address) {
                // The default name of a cluster is that of its node, so a stranger on this port is noticed.
                Ok(greeting) if greeting.cluster.starts_with(&self.name) => Some(Ok(greeting)),
                Ok(greeting) => Some(Err(format!("{address} is already in use by {}", greeting.cluster))),
                Err(RealBrokerError::Io { .. }) => None,
                Err(other) => Some(Err(format!("{other}; the port is in use"))),
            }
        });
        let problem = match answer {
            Some(Ok(greeting)) => return Ok(greeting),
            Some(Err(problem)) => problem,
            None => format!("no answer within {} s", START.as_secs()),
        };
        let output = tail(&self.dir.join(OUTPUT));
        Err(RealBrokerError::Start { installation: self.installation.to_string(), problem, output })
    }
}

/// The ports of one server.
#[derive(Clone, Copy)]
struct Ports {
    amqp: u16,
    tls: Option<u16>,
    /// Erlang's own, which `rabbitmqctl` speaks to.
    distribution: u16,
    /// Where Erlang nodes find each other; its own, so that no node of this machine is in the way.
    epmd: u16,
}

impl Ports {
    fn free(with_tls: bool) -> io::Result<Self> {
        // All are held until all are known, so that they differ.
        let (amqp, tls, distribution, epmd) = (hold_port()?, hold_port()?, hold_port()?, hold_port()?);
        let tls = tls.local_addr()?.port();
        Ok(Self {
            amqp: amqp.local_addr()?.port(),
            tls: with_tls.then_some(tls),
            distribution: distribution.local_addr()?.port(),
            epmd: epmd.local_addr()?.port(),
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "a server on this machine needs ports of this machine")]
fn hold_port() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

fn address(port: u16) -> String {
    format!("{}:{port}", Ipv4Addr::LOCALHOST)
}

/// Writes the files that the server reads, which knows `dir` as `inside`.
fn lay_out(dir: &Path, inside: &Path, ports: Ports, tls: Option<&TlsListener>) -> io::Result<()> {
    std::fs::create_dir(dir)?;
    // A disk that is nearly full would block every publish, and with it the tests.
    let mut configuration =
        format!("listeners.tcp.1 = {}\ndisk_free_limit.absolute = 1MB\n", address(ports.amqp));
    let mut plugins = "[].\n";
    if let (Some(tls), Some(port)) = (tls, ports.tls) {
        configuration += &tls.lay_out(dir, inside, &address(port))?;
        plugins = "[rabbitmq_auth_mechanism_ssl].\n";
    }
    std::fs::write(dir.join("rabbitmq.conf"), configuration)?;
    std::fs::write(dir.join("enabled_plugins"), plugins)
}

/// The whole environment of the server and of `rabbitmqctl`: nothing of the caller's reaches them but `PATH`.
fn set_environment(command: &mut Command, installation: &Installation, dir: &Path, name: &str, ports: Ports) {
    let inside = installation.inside(dir);
    // A user's PATH may lack the directories of `chroot` and `rabbitmqctl`.
    let path = setting("PATH").unwrap_or_default() + ":/usr/sbin:/usr/bin:/sbin:/bin";
    command
        .env_clear()
        .env("PATH", path)
        .env("LANG", "C.UTF-8")
        // Erlang keeps its cookie there: a server and its own `rabbitmqctl` share one, and nobody else does.
        .env("HOME", &inside)
        .env("ERL_EPMD_PORT", ports.epmd.to_string())
        .env("RABBITMQ_NODENAME", format!("{name}@localhost"))
        .env("RABBITMQ_DIST_PORT", ports.distribution.to_string())
        .env("RABBITMQ_MNESIA_BASE", inside.join("data"))
        .env("RABBITMQ_LOG_BASE", inside.join("log"))
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_PID_FILE", inside.join("pid"))
        .env("ERL_CRASH_DUMP", inside.join("erl_crash.dump"))
        .env("RABBITMQ_CONFIG_FILE", inside.join("rabbitmq.conf"))
        .env("RABBITMQ_ADVANCED_CONFIG_FILE", inside.join("advanced.config"))
        .env("RABBITMQ_GENERATED_CONFIG_DIR", inside.join("generated"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", inside.join("enabled_plugins"))
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            // Only this machine may speak to it, and its idle schedulers do not spin on cores that tests need.
            "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none",
        );
}

fn port_taken(output: &str) -> bool {
    ["eaddrinuse", "in use", "dist_port_already_used"].iter().any(|words| output.contains(words))
}

/// The last lines of what a server printed.
fn tail(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
