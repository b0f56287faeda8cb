//! The quickstart does what README says, on every broker.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why")]

use std::process::{Command, Output, Stdio};

use leveret_testkit::rabbitmq::brokers;

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
    for broker in brokers().expect("the brokers that are required are there") {
        let mut running = quickstart().env("AMQP_URL", broker.uri()).spawn().expect("cargo runs");
        // A broker that somebody else runs cannot be looked at, and the quickstart's own checks remain.
        if let Ok(mut listed) = broker.ctl(&["list_queues", "--silent", "name", "arguments"]) {
            while ARGUMENTS.iter().any(|(name, _)| arguments(&listed, name).is_none()) {
                assert!(
                    running.try_wait().expect("it can be asked").is_none(),
                    "it ends before all is seen: {listed}"
                );
                listed =
                    broker.ctl(&["list_queues", "--silent", "name", "arguments"]).expect("it worked before");
            }
            for (name, expected) in ARGUMENTS {
                assert_eq!(arguments(&listed, name).expect("seen above"), expected, "{name}");
            }
        }
        assert_ok(&running.wait_with_output().expect("it ends"));
        if let Ok(listed) = broker.ctl(&["list_queues", "--silent", "name"]) {
            assert!(!listed.contains("leveret.quickstart"), "it leaves queues: {listed}");
        }
    }
}

/// The arguments of one queue, sorted.
fn arguments(listed: &str, queue: &str) -> Option<Vec<String>> {
    let line = listed.lines().find(|line| line.split('\t').next() == Some(queue))?;
    let column = line.split('\t').nth(1)?;
    let mut found: Vec<String> = column
        .trim_start_matches('[')
        .trim_end_matches(']')
        .split("},{")
        // An empty string is an empty list to the tool.
        .map(|pair| pair.trim_matches(['{', '}']).replace('"', "").replace("[]", ""))
        .collect();
    found.sort();
    Some(found)
}
