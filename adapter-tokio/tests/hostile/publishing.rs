//! Servers that misbehave towards somebody who publishes.

use std::time::Duration;

use leveret_tokio::{Client, EnqueueError};

use crate::server::{
    Answer, CHANNEL_OPEN, CONFIRM_SELECT, PUBLISH, Server, ack, close, frame, header, method, returned,
};
use crate::{Note, config, connect, queue, soon};

fn hello() -> Note {
    Note("hello".to_owned())
}

#[tokio::test]
async fn confirms_and_returns_of_nothing_are_ignored() {
    let server = Server::start(|heard| match heard.method {
        CONFIRM_SELECT => Answer::UsualAnd(
            [
                ack(heard.channel, 0, true),
                ack(heard.channel, 0, false),
                ack(heard.channel, 1, false),
                ack(heard.channel, u64::MAX, true),
                returned(heard.channel),
                method(heard.channel, (60, 120), &[&u64::MAX.to_be_bytes()[..], &[1]].concat()),
            ]
            .concat(),
        ),
        PUBLISH => {
            let tag = heard.before as u64 + 1;
            Answer::Bytes(
                [
                    returned(heard.channel),
                    ack(heard.channel, tag, true),
                    ack(heard.channel, tag, false),
                    ack(heard.channel, 0, true),
                ]
                .concat(),
            )
        }
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    for _ in 0..10 {
        soon(client.enqueue(&queue(), &hello())).await.unwrap();
    }
    assert_eq!(server.connections(), 1, "nothing of it is worth a connection");
}

#[tokio::test]
async fn a_job_gets_through_whatever_ends_the_connection_it_was_sent_on() {
    let odd: [fn(u16) -> Answer; 14] = [
        |_| Answer::HangUp,
        |_| Answer::LastWords(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        |_| Answer::Bytes(vec![0; 1000]),
        |_| Answer::Bytes(close(0, 320, "CONNECTION_FORCED - operator", (0, 0))),
        |_| Answer::LastWords(close(0, 320, "CONNECTION_FORCED - operator", (0, 0))),
        |_| Answer::Bytes(vec![1, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]),
        |channel| Answer::Bytes(frame(9, channel, b"what is this")),
        |channel| Answer::Bytes(frame(8, channel, b"")),
        |channel| Answer::Bytes(header(channel, 10, &[0, 0])),
        |channel| Answer::Bytes(frame(3, channel, b"a body")),
        |channel| Answer::Bytes(method(channel, (50, 11), b"\x01q\0\0\0\0\0\0\0\0")),
        |channel| Answer::Bytes(method(channel, (90, 10), b"")),
        |channel| Answer::Bytes(frame(1, channel, b"\0")),
        |_| Answer::Bytes(ack(999, 1, false)),
    ];
    for (number, odd) in odd.into_iter().enumerate() {
        let server = Server::start(move |heard| match heard.method {
            PUBLISH if heard.connection == 0 => odd(heard.channel),
            _ => Answer::Usual,
        });
        let client = connect(&server).await.unwrap();
        let sent = soon(client.enqueue(&queue(), &hello())).await;
        assert!(sent.is_ok(), "{number}: {sent:?}");
        assert_eq!(server.connections(), 2, "{number}");
        client.shutdown(Duration::from_secs(1)).await.unwrap();
    }
}

#[tokio::test]
async fn a_large_job_that_is_cut_in_half_is_sent_again() {
    let server = Server::start(|heard| match heard.method {
        PUBLISH if heard.connection == 0 => Answer::LastWords(close(0, 541, "INTERNAL_ERROR", PUBLISH)),
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    soon(client.enqueue(&queue(), &Note("x".repeat(8 << 20)))).await.unwrap();
}

#[tokio::test]
async fn a_channel_that_is_closed_over_a_job_costs_that_job() {
    let server = Server::start(|heard| match (heard.method, heard.connection) {
        (PUBLISH, 0) if heard.before == 0 => Answer::CloseChannel(406, "PRECONDITION_FAILED - too large"),
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    let error = soon(client.enqueue(&queue(), &hello())).await.unwrap_err();
    assert!(matches!(error, EnqueueError::Unknown(_)), "{error}");
    soon(client.enqueue(&queue(), &hello())).await.unwrap();
}

#[tokio::test]
async fn a_server_that_closes_idle_channels_again_and_again_is_not_met_with_a_storm() {
    let server = Server::start(|heard| match heard.method {
        CHANNEL_OPEN if heard.connection > 0 => Answer::CloseChannel(504, "CHANNEL_ERROR - no"),
        PUBLISH => Answer::HangUp,
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    let enqueued = client.enqueue(&queue(), &hello());
    tokio::time::timeout(Duration::from_secs(2), enqueued).await.unwrap_err();
    assert!((2..60).contains(&server.connections()), "{} connections", server.connections());
    soon(client.shutdown(Duration::ZERO)).await.unwrap();
}

#[tokio::test]
async fn a_server_whose_heartbeats_stop_is_left() {
    let server = Server::without_heartbeats(|heard| match heard.method {
        PUBLISH if heard.connection == 0 => Answer::Silence,
        _ => Answer::Usual,
    });
    let config = config(&server).heartbeat(Duration::from_secs(1));
    let client = Client::new(config).queue(queue()).connect().await.unwrap();
    soon(client.enqueue(&queue(), &hello())).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn shutdown_is_bounded_though_nothing_is_answered() {
    for flood in [false, true] {
        let server = Server::start(move |heard| match heard.method {
            PUBLISH if flood => Answer::Flood(frame(8, 0, &[])),
            PUBLISH => Answer::Silence,
            _ => Answer::Usual,
        });
        let client = connect(&server).await.unwrap();
        let enqueued = tokio::spawn(client.enqueue(&queue(), &hello()));
        tokio::time::sleep(Duration::from_millis(200)).await;
        let closed = soon(client.shutdown(Duration::from_millis(100))).await.unwrap();
        assert_eq!(closed.unconfirmed, 1);
        assert_eq!(soon(enqueued).await.unwrap(), Err(EnqueueError::Unconfirmed));
    }
}
