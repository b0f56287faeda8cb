//! A client that knows nothing of leveret: pika, the usual Python one, over TCP.

use std::path::Path;
use std::process::{Command, Output};

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::skip::skip;

#[expect(clippy::disallowed_methods, reason = "a test is configured by its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn python(interpreter: &str, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(interpreter).args(arguments).output()
}

/// `LEVERET_PYTHON` names the interpreter, `python3` is the default. Without pika there this test is skipped,
/// unless `LEVERET_REQUIRE_PIKA=1`.
#[test]
fn pika_publishes_and_consumes() {
    let interpreter = variable("LEVERET_PYTHON").unwrap_or_else(|| "python3".to_owned());
    let found = python(&interpreter, &["-c", "import pika"]);
    if !found.is_ok_and(|output| output.status.success()) {
        let why = format!("'{interpreter}' is missing or has no pika: install it with `pip install pika`");
        assert!(variable("LEVERET_REQUIRE_PIKA").as_deref() != Some("1"), "{why}");
        return skip(why);
    }
    let broker = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/pika_roundtrip.py");
    let script = script.to_str().unwrap();
    let output = python(&interpreter, &[script, &broker.uri()]).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let left: Vec<_> =
        broker.with(|broker, _| broker.queues()).into_iter().filter(|it| it.ready > 0).collect();
    assert!(left.is_empty(), "not all was consumed: {left:?}");
}
