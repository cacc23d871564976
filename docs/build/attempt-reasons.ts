// What each attempt reason means and what to do about it. When a reason is added, the compiler requires an entry here.
import type { EndReason } from '@bullpen/contract'

interface Reason {
  readonly cause: string
  readonly action: string
}

export const REASON_ADVICE: Readonly<Record<EndReason, Reason>> = {
  unexpected_error: {
    cause: 'The handler panicked: it threw an error that was not declared.',
    action: 'Fix the bug, or declare the failure with `TaskError` or `classify`.',
  },
  invalid_output: {
    cause:
      'The handler returned a value that the output schema rejects, that cannot be represented in JSON, or that is too large.',
    action: 'Fix the handler or the schema. Store large results elsewhere.',
  },
  invalid_follow_up: {
    cause:
      'The handler returned, but an `onSuccess` follow-up of the definition is invalid: its function threw, or its input does not match the schema of the follow-up. The task is not completed, so its effects have happened.',
    action: 'Fix the function in the definition. The message names the follow-up.',
  },
  escaped_error: {
    cause:
      'An error was thrown outside the handler: in a timer, in an event listener, or in a promise that nothing awaits.',
    action: 'Await the promise, or handle the error event. The stack shows the line.',
  },
  isolate_died: {
    cause: "The handler's thread or child process exited or crashed.",
    action:
      'Look for a call to `process.exit` or a native crash. The `cause` field in the log has the exit code or signal.',
  },
  out_of_memory: {
    cause: "The handler's child process reached its memory limit.",
    action: 'Raise `memoryLimit`, or stream the data.',
  },
  process_lost: {
    cause:
      "The worker died while it was running this task, or lost the task's lock. The attempt does not count, and the task runs next in quarantine. A task that loses its worker more than ten times becomes dead.",
    action:
      "If it happens again, find out what kills the worker's process, for example the kernel's out-of-memory killer.",
  },
  poison: {
    cause:
      "The task's process has died `maxDeaths` times (3 by default). After the first death, the task ran apart from other tasks, so the task itself is probably the cause. It is dead and is not started again.",
    action:
      'Find out what kills the process before you retry the task. See [A poison task](../runbook/poison-tasks.md).',
  },
  cancelled: { cause: 'Someone cancelled the task.', action: 'Nothing.' },
  slot_stopped: { cause: 'The slot was stopped with `bullpen stop --hard`.', action: 'Nothing: the task runs again.' },
  queue_shutdown: {
    cause: 'The whole queue was drained, and its definition cancels waiting tasks on shutdown.',
    action: 'Enqueue the task again if it is still needed.',
  },
  drain: {
    cause: 'The worker was drained, and the attempt did not end in time.',
    action: 'Nothing: the task runs again. If it happens on every deploy, see [Drain](../explanation/drain.md).',
  },
  parent_closed: {
    cause: "The program aborted the worker's `parent` signal.",
    action: 'Nothing: the task runs again.',
  },
  lock_lost: {
    cause: 'The worker could not renew its lock, because its event loop was blocked or because Redis was unreachable.',
    action: 'Another worker runs the task. See [A stalled event loop](../runbook/event-loop-stalled.md).',
  },
  snoozed: { cause: 'The handler called `ctx.snooze`.', action: 'Nothing.' },
  rate_limited: {
    cause: 'The handler threw `rateLimited(…)`.',
    action: 'Nothing: the queue or the concurrency key resumes by itself.',
  },
  run_timeout: {
    cause: 'The attempt ran for longer than `timeout`.',
    action: 'Raise the timeout, or find out what the handler is waiting for.',
  },
  heartbeat_timeout: {
    cause: 'The handler did not send a heartbeat for `heartbeatTimeout`.',
    action: 'Call `heartbeat()` or `progress()` more often, or find out where the handler hangs.',
  },
  total_timeout: {
    cause: 'The total timeout, which covers all attempts together, expired.',
    action: 'Raise `totalTimeout`, or find out why the earlier attempts failed.',
  },
  queue_timeout: {
    cause: 'The task waited longer than `queueTimeout` and was never started.',
    action: 'Add workers. See [The backlog grows](../runbook/backlog-grows.md).',
  },
}
