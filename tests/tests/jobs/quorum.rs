//! Quorum queues and replicated holds.

use leveret_testkit::stranger;
use leveret_tokio::{HoldTtl, JobError, Queue};

use super::{Diary, connect, email, everywhere, fresh_queue, on_our_brokers, run, seconds, wait_for_ready};

fn quorum() -> Queue {
    fresh_queue().quorum()
}

fn ttl(seconds: u32) -> HoldTtl {
    HoldTtl::from_millis(seconds * 1_000).expect("in range")
}

#[test]
fn a_failing_job_of_a_quorum_queue_is_tried_three_times_and_becomes_a_dead_letter() {
    everywhere(async |place| {
        let queue = quorum();
        let client = connect(place, &queue).await;
        let (diary, settled) = (Diary::default(), Diary::default());
        client.enqueue(&queue, &email("ada@example.org")).await.expect("it is accepted");
        let notes = diary.clone();
        let worker = run(&client, &queue, settled.clone(), move |_, context| {
            notes.note(format!("attempt {}", context.attempt()));
            Err(JobError::retry("connection refused"))
        });
        settled.wait_for("dead", 1).await;
        // A replicated hold needs no lease, so that no slow confirm doubles a job.
        assert_eq!(diary.entries(), ["attempt 1", "attempt 2", "attempt 3"], "on {place}");
        assert!(diary.between("attempt 1", "attempt 2") >= seconds(2), "early on {place}");
        assert!(diary.between("attempt 2", "attempt 3") >= seconds(2), "early on {place}");
        wait_for_ready(&client, &queue.name().dead(), 1).await;
        let held = client.inspect(queue.name().held(ttl(2))).await.expect("the broker answers");
        assert_eq!(held.map(|counts| counts.ready), Some(0), "on {place}");
        assert_eq!(worker.stop().await.retried, 2);
    });
}

#[test]
fn a_deferred_job_of_a_quorum_queue_comes_back_with_its_attempt() {
    everywhere(async |place| {
        let queue = quorum();
        let client = connect(place, &queue).await;
        let (diary, settled) = (Diary::default(), Diary::default());
        client.enqueue(&queue, &email("ada@example.org")).await.expect("it is accepted");
        let notes = diary.clone();
        let worker = run(&client, &queue, settled.clone(), move |_, context| {
            notes.note(format!("{} {}", context.attempt(), context.deferrals()));
            if context.deferrals() == 0 { Err(JobError::defer(seconds(1))) } else { Ok(()) }
        });
        settled.wait_for("done", 1).await;
        assert_eq!(diary.entries(), ["1 0", "1 1"], "on {place}");
        assert!(diary.between("1 0", "1 1") >= seconds(1), "early on {place}");
        worker.stop().await;
    });
}

#[test]
fn a_deferred_job_of_a_quorum_queue_overtakes_the_backlog_where_the_broker_knows_its_priority() {
    everywhere(async |place| {
        let queue = quorum().prefetch(1);
        let client = connect(place, &queue).await;
        let (diary, settled) = (Diary::default(), Diary::default());
        client.enqueue(&queue, &email("limited")).await.expect("it is accepted");
        let worker = run(&client, &queue, settled.clone(), |_, _| Err(JobError::defer(seconds(2))));
        settled.wait_for("deferred", 1).await;
        worker.stop().await;
        for name in ["1", "2", "3", "4"] {
            client.enqueue(&queue, &email(name)).await.expect("it is accepted");
        }
        wait_for_ready(&client, queue.name().as_str(), 5).await;
        let notes = diary.clone();
        let worker = run(&client, &queue, settled.clone(), move |job, _| {
            notes.note(job.to);
            Ok(())
        });
        settled.wait_for("done", 5).await;
        worker.stop().await;
        let turn = diary.entries().iter().position(|entry| entry == "limited").expect("it has run");
        // RabbitMQ 4.0 to 4.2 serve two of high priority for each other one; before, they come in turn.
        let expected = if place.sorts_quorum_queues() { turn <= 1 } else { turn == 4 };
        assert!(expected, "{:?} on {place}", diary.entries());
    });
}

#[test]
fn jobs_in_replicated_holds_survive_a_restart_of_the_broker() {
    on_our_brokers(async |place, broker| {
        let queue = quorum();
        let client = connect(place, &queue).await;
        for number in 0..20 {
            client.enqueue_in(&queue, &email(&number.to_string()), seconds(3)).await.expect("it is accepted");
        }
        broker.ctl(&["stop_app"]).expect("rabbitmqctl works");
        tokio::time::sleep(seconds(4)).await;
        broker.ctl(&["start_app"]).expect("rabbitmqctl works");
        let diary = Diary::default();
        let notes = diary.clone();
        let worker = run(&client, &queue, Diary::default(), move |job, _| {
            notes.note(job.to);
            Ok(())
        });
        for number in 0..20 {
            diary.wait_for(&number.to_string(), 1).await;
        }
        worker.stop().await;
    });
}

#[test]
fn delayed_jobs_wait_in_replicated_holds_in_front_of_either_kind_of_queue() {
    everywhere(async |place| {
        for queue in [quorum(), fresh_queue().replicated_holds([seconds(4)])] {
            let client = connect(place, &queue).await;
            let diary = Diary::default();
            diary.note("enqueued");
            for _ in 0..20 {
                client.enqueue_in(&queue, &email("soon"), seconds(1)).await.expect("it is accepted");
            }
            client.enqueue_in(&queue, &email("late"), seconds(4)).await.expect("it is accepted");
            wait_for_ready(&client, queue.name().as_str(), 20).await;
            wait_for_ready(&client, queue.name().as_str(), 21).await;
            diary.note("released");
            assert!(diary.between("enqueued", "released") >= seconds(4), "early on {place}");
        }
    });
}

#[test]
fn poison_on_a_quorum_queue_is_moved_aside() {
    everywhere(async |place| {
        let queue = quorum();
        let client = connect(place, &queue).await;
        let (uri, name) = (place.uri().to_owned(), queue.name().to_string());
        let publish = tokio::task::spawn_blocking(move || stranger::publish_body(&uri, &name, b"{".to_vec()));
        publish.await.expect("no panic").expect("it is published");
        let settled = Diary::default();
        let worker = run(&client, &queue, settled.clone(), |_, _| Ok(()));
        settled.wait_for("dead", 1).await;
        wait_for_ready(&client, &queue.name().dead(), 1).await;
        worker.stop().await;
    });
}

#[test]
fn the_broker_shows_exactly_the_documented_arguments_of_a_quorum_queue() {
    on_our_brokers(async |place, broker| {
        let queue = quorum().message_ttl(seconds(3_600));
        let client = connect(place, &queue).await;
        client.enqueue_in(&queue, &email("ada@example.org"), seconds(30)).await.expect("it is accepted");
        // A second client declares all of it again, and nothing is refused.
        let again = connect(place, &queue).await;
        again.enqueue_in(&queue, &email("ada@example.org"), seconds(30)).await.expect("it is accepted");
        let name = queue.name();
        let arguments = |queue: &str| {
            let found = broker.queue_arguments(queue).expect("rabbitmqctl works");
            found.expect("the queue is there")
        };
        assert_eq!(
            arguments(name.as_str()),
            [
                "x-dead-letter-exchange,".to_owned(),
                format!("x-dead-letter-routing-key,{name}.dead"),
                "x-delivery-limit,20".to_owned(),
                "x-message-ttl,3600000".to_owned(),
                "x-queue-type,quorum".to_owned(),
            ],
            "on {place}"
        );
        assert_eq!(
            arguments(&name.dead()),
            ["x-delivery-limit,2147483647", "x-queue-type,quorum"],
            "on {place}"
        );
        assert_eq!(
            arguments(&name.held(ttl(30))),
            [
                "x-dead-letter-exchange,".to_owned(),
                format!("x-dead-letter-routing-key,{name}"),
                "x-dead-letter-strategy,at-least-once".to_owned(),
                "x-message-ttl,30000".to_owned(),
                "x-overflow,reject-publish".to_owned(),
                "x-queue-type,quorum".to_owned(),
            ],
            "on {place}"
        );
    });
}
