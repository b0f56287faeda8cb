//! What every handle of one client holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leveret_core::envelope::JobId;
use leveret_core::session::{ConfigError, EnqueueError, NewJob, PublishId, Session, SessionConfig};
use leveret_core::topology::{Queue, QueueName, QueuePlan};

use crate::runtime::Spawn;
use crate::shared::{Answer, Shared, Ticket};

/// How long a client whose last handle was dropped goes on with what is under way.
const DROP_GRACE: Duration = Duration::from_secs(5);

/// One client. When the last handle is dropped, the client shuts itself down.
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    /// The queues as the session knows them.
    pub(crate) queues: BTreeMap<QueueName, QueuePlan>,
}

/// Why a queue cannot be used: not with this client, or not with this description.
pub(crate) enum Unusable {
    Unknown(QueueName),
    DescribedOtherwise { queue: QueueName, setting: &'static str },
}

/// What to do when too much is waiting already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    Wait,
    Fail,
}

/// What the session said to a job.
enum Begun {
    /// Its verdict will come.
    Accepted(JobId, Answer<PublishId, Result<(), EnqueueError>>),
    /// There will be room.
    Full(Answer<Ticket, ()>),
}

impl Handle {
    /// A client of a new session, which no driver runs yet.
    pub(crate) fn new(config: SessionConfig, runtime: impl Spawn) -> Result<Self, ConfigError> {
        let mut queues = BTreeMap::new();
        for queue in &config.queues {
            queues.insert(queue.name().clone(), queue.plan().map_err(ConfigError::Queue)?);
        }
        let session = Session::new(config, runtime.seed())?;
        Ok(Self { shared: Shared::new(session, runtime), queues })
    }

    /// What is known of a queue, provided that the caller describes it as the client was told.
    pub(crate) fn known(&self, queue: &Queue) -> Result<&QueuePlan, Unusable> {
        let Some(known) = self.queues.get(queue.name()) else {
            return Err(Unusable::Unknown(queue.name().clone()));
        };
        match known.description().differs_in(queue) {
            None => Ok(known),
            Some(setting) => Err(Unusable::DescribedOtherwise { queue: queue.name().clone(), setting }),
        }
    }

    /// Enqueues a job and waits for the broker's verdict.
    pub(crate) async fn enqueue(
        &self,
        queue: &QueueName,
        job: NewJob,
        when_full: WhenFull,
    ) -> Result<JobId, EnqueueError> {
        loop {
            match self.begin(queue, &job, when_full)? {
                Begun::Accepted(id, verdict) => {
                    // Whatever ended the session, the job may have been written before.
                    let verdict = verdict.await.ok().flatten();
                    return verdict.unwrap_or(Err(EnqueueError::Unconfirmed)).map(|()| id);
                }
                Begun::Full(room) => {
                    if !matches!(room.await, Ok(Some(()))) {
                        return Err(EnqueueError::Closed);
                    }
                }
            }
        }
    }

    fn begin(&self, queue: &QueueName, job: &NewJob, when_full: WhenFull) -> Result<Begun, EnqueueError> {
        let wall = self.shared.wall();
        let begun =
            self.shared.command(|state, now, _| match state.session.enqueue(now, wall, queue, job.clone()) {
                Ok(accepted) => {
                    state.publishes.add(accepted.publish);
                    let verdict = Answer::new(&self.shared, |state| &mut state.publishes, accepted.publish);
                    Ok(Begun::Accepted(accepted.job, verdict))
                }
                Err(EnqueueError::Full) if when_full == WhenFull::Wait => {
                    let ticket = state.ticket();
                    state.room.add(ticket);
                    Ok(Begun::Full(Answer::new(&self.shared, |state| &mut state.room, ticket)))
                }
                Err(error) => Err(error),
            });
        begun.unwrap_or(Err(EnqueueError::Closed))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.shared.command(|state, now, wakes| {
            if state.end.is_none() && !state.shutting_down {
                state.shut_down(now, DROP_GRACE, wakes);
            }
        });
    }
}
