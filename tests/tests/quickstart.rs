//! The quickstart does what README says, on every broker.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why")]

use std::process::{Command, Output, Stdio};

use leveret_testkit::rabbitmq::{RealBroker, needed_brokers};

/// What the quickstart's queues look like on a RabbitMQ while it runs, in the words of `rabbitmqctl`.
const ARGUMENTS: [(&str, &[&str]); 3] = [
    ("leveret.quickstart.emails", &["x-max-priority,10", "x-queue-type,classic"]),
    ("leveret.quickstart.emails.dead", &["x-queue-type,classic"]),
    (
        "leveret.quickstart.emails.deferred.2000",
        &[
            "x-dead-letter-exchange,",
            "x-dead-letter-routing-key,leveret.quickstart.emails",
            "x-expires,4000",
            "x-message-ttl,2000",
            "x-queue-type,classic",
        ],
    ),
];

fn quickstart() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "leveret-tokio", "--example", "quickstart"]);
    command.env_remove("AMQP_URL").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn assert_ok(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("quickstart: ok")), "{text}");
}

#[test]
fn the_quickstart_needs_nothing_but_itself() {
    assert_ok(&quickstart().output().expect("cargo runs"));
}

#[test]
fn the_quickstart_runs_on_rabbitmq_with_the_documented_arguments_and_leaves_nothing() {
    for broker in needed_brokers().expect("the brokers that are required are there") {
        // A hold queue is there for some seconds, and on a busy machine `rabbitmqctl` takes as long to look.
        let seen = (0..5).any(|_| run_and_look(broker));
        assert!(seen, "it ends before {} is seen", ARGUMENTS[ARGUMENTS.len() - 1].0);
        if let Ok(listed) = broker.ctl(&["list_queues", "--silent", "name"]) {
            assert!(!listed.contains("leveret.quickstart"), "it leaves queues: {listed}");
        }
    }
}

/// Runs it on a broker and compares its queues. Answers whether all of them were seen.
fn run_and_look(broker: &RealBroker) -> bool {
    let mut running = quickstart().env("AMQP_URL", broker.uri()).spawn().expect("cargo runs");
    // A broker that somebody else runs cannot be looked at, and the quickstart's own checks remain.
    let expected = if broker.is_ours() { &ARGUMENTS[..] } else { &[] };
    let seen = expected.iter().all(|(name, expected)| {
        loop {
            if let Some(found) = broker.queue_arguments(name).expect("rabbitmqctl works") {
                assert_eq!(found, *expected, "{name}");
                return true;
            }
            if running.try_wait().expect("it can be asked").is_some() {
                return false;
            }
        }
    });
    assert_ok(&running.wait_with_output().expect("it ends"));
    seen
}
