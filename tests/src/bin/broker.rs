//! `broker`: the embedded broker on a TCP port, until it is stopped.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;

const HELP: &str = "\
An AMQP 0-9-1 broker in one process, for tests and demonstrations. It keeps everything in memory.

Usage: broker [--port PORT] [--host ADDRESS]

  --port PORT      port to listen on; 0 takes a free one (default 5672)
  --host ADDRESS   IP address to listen on (default 127.0.0.1)
  --help           this text

User guest, password guest, virtual host /. Stop it with Ctrl-C.
";

enum Command {
    Help,
    Serve(SocketAddr),
}

fn main() -> ExitCode {
    match parse(lexopt::Parser::from_env())
        .map_err(|error| error.to_string())
        .and_then(|command| run(&command))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if this cannot be written either.
            let _ = writeln!(io::stderr(), "broker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: lexopt::Parser) -> Result<Command, lexopt::Error> {
    use lexopt::prelude::*;
    let mut addr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5672);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("port") => {
                let text = arguments.value()?.string()?;
                let port = text.parse().map_err(|_| {
                    format!("--port takes a number from 0 to 65535, found '{text}': choose a free port")
                })?;
                addr.set_port(port);
            }
            Long("host") => {
                let text = arguments.value()?.string()?;
                let ip = text.parse().map_err(|_| {
                    format!("--host takes an IP address, found '{text}': write 127.0.0.1 or 0.0.0.0")
                })?;
                addr.set_ip(ip);
            }
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(format!("{}: see broker --help", other.unexpected()).into()),
        }
    }
    Ok(Command::Serve(addr))
}

fn run(command: &Command) -> Result<(), String> {
    let mut stdout = io::stdout();
    let cannot_print = |error: io::Error| format!("cannot write to standard output: {error}");
    match *command {
        Command::Help => stdout.write_all(HELP.as_bytes()).map_err(cannot_print),
        Command::Serve(addr) => {
            // Nobody reads the log here.
            let config = BrokerConfig::default().event_limit(0);
            let broker = TcpBroker::start(config, addr)
                .map_err(|error| format!("cannot listen on {addr}: {error}; choose another --port"))?;
            writeln!(stdout, "leveret broker: listening on {}", broker.uri()).map_err(cannot_print)?;
            loop {
                std::thread::park();
            }
        }
    }
}
