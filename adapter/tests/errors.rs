//! What an error looks like to a program that prints it with its causes, as `anyhow` and `eyre` do.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::error::Error;
use std::time::Duration;

use leveret_adapter::{
    CommandError, ConfigError, ConnectError, ConnectionError, DelayTooLong, Endpoint, EnqueueError,
    Granularity, LinkError, NameError, ProtocolError, Queue, QueueName, RequestError, RetryPolicy,
    ShortString, Stopped, SubscribeError, SubscriptionError, TlsFailure, TlsFile, TlsFileProblem,
    WorkerError,
};
use leveret_core::envelope::RawPayload;

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn link_errors() -> [LinkError; 3] {
    let endpoint = Endpoint::new("broker.test", 5672);
    let error = ConnectionError::Protocol(ProtocolError::UnknownChannel { channel: 7 });
    let exhausted = CommandError::ChannelsExhausted { limit: 1 };
    let file = TlsFile::Authorities;
    let problem = TlsFileProblem::Unreadable { text: "no such file".to_owned() };
    let tls = TlsFailure::File { file, path: "/etc/ca.pem".into(), problem };
    [
        LinkError::Tls { endpoint: endpoint.clone(), failure: Box::new(tls) },
        LinkError::Connection { endpoint: endpoint.clone(), error },
        LinkError::Unusable { endpoint, error: exhausted },
    ]
}

/// One of every kind that holds another error.
fn errors() -> Vec<Box<dyn Error>> {
    let too_long: DelayTooLong = Granularity::default().round_up(Duration::MAX).unwrap_err();
    let unreadable = RawPayload::from_json("{".into()).unwrap_err();
    let waits_too_long = Queue::new("q").unwrap().retry(RetryPolicy::fixed(2, Duration::MAX)).plan();
    let waits_too_long = waits_too_long.unwrap_err();
    let no_name: NameError = QueueName::new("").unwrap_err();
    let no_channel = CommandError::ChannelsExhausted { limit: 1 };
    let mut errors: Vec<Box<dyn Error>> = vec![
        Box::new(no_name),
        Box::new(waits_too_long.clone()),
        Box::new(ConfigError::Queue(waits_too_long.clone())),
        Box::new(ConnectError::Config(ConfigError::Queue(waits_too_long))),
        Box::new(ConnectionError::Protocol(ProtocolError::UnknownChannel { channel: 7 })),
        Box::new(EnqueueError::DelayTooLong(too_long)),
        Box::new(EnqueueError::Payload(unreadable)),
        Box::new(RequestError::NoChannel(no_channel)),
        Box::new(SubscriptionError::NoChannel(no_channel)),
        Box::new(WorkerError::Stopped(Stopped::DriverGone)),
        Box::new(WorkerError::Subscribe(SubscribeError::UnknownQueue { queue: queue() })),
    ];
    for error in link_errors() {
        errors.push(Box::new(error.clone()));
        errors.push(Box::new(ConnectError::Link(error.clone())));
        errors.push(Box::new(SubscriptionError::Link(error.clone())));
        errors.push(Box::new(WorkerError::Ended(SubscriptionError::Link(error))));
    }
    errors
}

#[test]
fn no_cause_is_told_twice() {
    for error in errors() {
        let mut told: &dyn Error = &*error;
        while let Some(cause) = told.source() {
            let (text, inner) = (told.to_string(), cause.to_string());
            assert!(!text.contains(&inner), "\"{text}\" has \"{inner}\" in it, and again as its cause");
            told = cause;
        }
    }
}

#[test]
fn an_inner_error_is_told_by_the_outer_one() {
    let [_, connection, unusable] = link_errors();
    let outer = WorkerError::Ended(SubscriptionError::Link(connection)).to_string();
    assert!(outer.contains("broker.test:5672") && outer.contains("a frame on channel 7"), "{outer}");
    let outer = ConnectError::Link(unusable).to_string();
    assert!(outer.contains("all 1 channels of the connection are open"), "{outer}");
}

#[test]
fn a_text_says_what_to_write_instead() {
    let unknown = EnqueueError::UnknownQueue { queue: queue() }.to_string();
    assert!(unknown.contains("Client::queue(..)"), "{unknown}");
    let other = EnqueueError::DifferentDescription { queue: queue(), setting: "retry" }.to_string();
    assert!(other.contains("another retry"), "{other}");
    let text = ShortString::from_static("NOT_ALLOWED - vhost  not found");
    let no_host = ConnectionError::VirtualHostRefused { virtual_host: ShortString::EMPTY, text }.to_string();
    assert!(no_host.contains("leave out the last `/`") && no_host.contains("`%2f`"), "{no_host}");
}
