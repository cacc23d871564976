// What each error code means and what to do about it. When a code is added, the compiler requires an entry here.
import type { ErrorCode } from '@bullpen/contract'

interface Advice {
  readonly meaning: string
  readonly action: string
}

export const ERROR_ADVICE: Readonly<Record<ErrorCode, Advice>> = {
  malformed_json: { meaning: 'The request body is empty, not JSON, or not UTF-8.', action: 'Fix the body.' },
  invalid_request: {
    meaning: 'A field, a query parameter or the request itself is wrong or unknown.',
    action: 'Read `errors`, which lists the invalid parts of the request.',
  },
  unknown_task: {
    meaning: 'The catalogue has no task with this name.',
    action: 'Use the name that `detail` suggests, or deploy the API with a catalogue that contains the task.',
  },
  invalid_input: {
    meaning: "The input does not match the task's schema.",
    action: 'Read `errors` and fix the input.',
  },
  payload_too_large: {
    meaning:
      "The body is larger than the limit, the request has too many tasks, or its tasks exceed the queue's `maxBytes` or `maxTasks` even if the queue is empty. `detail` says which.",
    action:
      'Send fewer tasks in each request. If a single task is too large, store the data elsewhere and send a reference to it, or raise `BULLPEN_API_BODY_LIMIT` (or `BULLPEN_API_BULK_BODY_LIMIT`).',
  },
  request_timeout: {
    meaning:
      'The headers did not arrive within 3 seconds, or the body arrived more slowly than `BULLPEN_API_MIN_BODY_RATE`. The request has had no effect.',
    action:
      'Send the request again, on a new connection. If the network is slow, send smaller bodies or lower that rate.',
  },
  headers_too_large: {
    meaning: 'The request line and the headers have more than 16 KiB.',
    action: 'Send less in headers and in the query, such as fewer cookies.',
  },
  unsupported_transfer_coding: {
    meaning: 'The request has a `Transfer-Encoding` other than `chunked`.',
    action: 'Send the body in chunks or with a `Content-Length`, without another coding such as `gzip`.',
  },
  unsupported_http_version: {
    meaning: 'The request uses a version of HTTP other than 1.0 and 1.1.',
    action:
      'Send the request with HTTP/1.1. If a proxy in front of the API uses HTTP/2, configure it to send HTTP/1.1 to the API.',
  },
  unsupported_media_type: {
    meaning: 'The body is not `application/json`, is not in UTF-8, or is compressed.',
    action: 'Send `Content-Type: application/json`, UTF-8 and no `Content-Encoding`.',
  },
  invalid_cursor: {
    meaning: 'The cursor comes from another listing, such as one of another queue, status or fingerprint.',
    action: 'Start the listing again without a cursor.',
  },
  unauthorized: {
    meaning: 'The API key is missing or is not valid for this API.',
    action: 'Send `Authorization: Bearer KEY`. A development key is accepted only from the same machine.',
  },
  forbidden: {
    meaning:
      'The request would change data through the board, but the board is read-only, does not offer this change, or was called by a page of another site. Or the path has a `..` segment, which leads out of a directory.',
    action:
      'To change data, use the API or the CLI, or [switch on the buttons](../how-to/bull-board.md#switch-on-the-buttons). Send a path without `..` segments.',
  },
  task_not_found: {
    meaning:
      'There is no task with this id. It may have been deleted by request, or removed when its retention period ended.',
    action: 'Check the id. To keep tasks for longer, raise the [retention](../how-to/retention.md) of their status.',
  },
  cancel_not_found: {
    meaning: 'There is no cancellation with this id, or the cancellation completed more than 24 hours ago.',
    action: 'Check the id.',
  },
  task_not_dead: {
    meaning: 'Only a dead task can be retried or deleted, and this task has another status.',
    action: 'Read `detail`, which names the status. Another request may already have retried the task.',
  },
  invalid_follow_up: {
    meaning:
      "An `onFailure` or `onEnd` follow-up of the task's definition cannot be created from this input: its function throws, its input does not match the follow-up's schema, or definitions have already enqueued 32 tasks in a row.",
    action: 'Read `detail`, which names the follow-up, and fix the function in the definition.',
  },
  already_compensated: {
    meaning: 'Compensations have undone steps of this dead task, and the retry does not say that this is intended.',
    action:
      'Enqueue a new task, which takes all steps again. If the handler can continue after its compensations, pass `afterCompensation: true`.',
  },
  dead_task_request_not_found: {
    meaning:
      'No request to retry or delete dead tasks has this id, or the request was completed more than seven days ago.',
    action: 'Check the id.',
  },
  too_many_dead_task_requests: {
    meaning: 'The queue has 100 unfinished requests that retry or delete dead tasks by filter.',
    action: 'Retry when one of them is done, or send one request with a broader filter instead of several.',
  },
  no_events: {
    meaning:
      'The definition of the task, or the settings of its queue, turn its events off. Short tasks have none by default.',
    action:
      'Set `events: true` in the definition ([Events](../how-to/events.md)). To wait for the end of a task without events, use `?wait=30s`.',
  },
  queue_not_found: {
    meaning: 'No task in the catalogue uses this queue.',
    action: 'Look up the names of the queues with `GET /v1/fleet`.',
  },
  worker_not_found: {
    meaning: 'There is no live worker with this id.',
    action: 'List the workers with `bullpen fleet`. A restarted worker has a new id.',
  },
  command_not_found: {
    meaning: 'There is no command with this id, or the command is older than seven days.',
    action: 'Check the id.',
  },
  command_id_reused: {
    meaning: 'Another command already has this id.',
    action: 'Choose a new id, or omit `id`.',
  },
  schedule_not_found: {
    meaning: 'The namespace has no schedule with this name.',
    action: 'List the schedules with `bullpen schedules list`.',
  },
  schedule_name_taken: {
    meaning: "A schedule with this name exists for a task of another queue. A schedule's queue cannot be changed.",
    action: 'Delete the other schedule first, or choose another name.',
  },
  group_not_found: {
    meaning:
      'There is no group with this id, or it is no longer kept. A group is kept for a day after it has ended, or for its `keep`.',
    action: 'List the unfinished groups with `bullpen groups`.',
  },
  run_not_found: {
    meaning:
      'There is no pipeline run with this id, or it is no longer kept. A run is kept for a day after it has ended, or for its `keep`.',
    action: 'Start the pipeline again.',
  },
  run_not_ended: {
    meaning: 'The run of a pipeline has not ended, and only runs that have ended can be deleted.',
    action: 'Cancel the run with `bullpen runs cancel ID --wait 1m`, or wait for its end, and then delete it.',
  },
  run_id_taken: {
    meaning: 'A run with this id exists, and was started with another pipeline, input, `totalTimeout` or `keep`.',
    action: 'Send exactly the same request again to get the run, or choose another id. `detail` says what differs.',
  },
  unknown_pipeline: {
    meaning: "No pipeline with this name is in the API's catalogue.",
    action: 'Check the name, pass the pipeline to `defineCatalogue`, and deploy the API.',
  },
  group_sealed: {
    meaning: 'The group is sealed or cancelled, so it accepts no members.',
    action: 'Create another group. Seal a group only after its last member has been added.',
  },
  group_ended: {
    meaning: 'All members of the group have ended, or it was cancelled. An ended group never changes again.',
    action: 'Create another group.',
  },
  group_full: {
    meaning: 'The group would have more than 100,000 members.',
    action: 'Divide the work among several groups, or let each member handle several items.',
  },
  group_busy: {
    meaning: 'More than 10,000 members of the group, or 32 MiB of them, are stored but not yet in their queues.',
    action: 'Send the request again after `Retry-After`. The client does this by itself.',
  },
  route_not_found: { meaning: 'The API does not have this path.', action: 'Look up the path in `/reference`.' },
  method_not_allowed: {
    meaning: 'The path exists but does not accept this method.',
    action: 'Use a method from the `Allow` header.',
  },
  redis_unavailable: {
    meaning:
      'Redis did not respond within a second, or cannot be used: for example, it refuses the user, the password or writes. `detail` says why.',
    action:
      'Retry after the time in `Retry-After`. If the response has a `taskId`, look that task up first, because it may have been stored. If Redis stays unusable, see [Redis is unreachable](../runbook/redis-unreachable.md).',
  },
  not_replicated: {
    meaning:
      "The task has `durability: 'replicated'`, and no replica of Redis has confirmed in time that it has the task. The task is stored under the problem's `taskId` and may run, but a failover may lose it.",
    action:
      'Send the request again with the same Idempotency-Key: it stores nothing new, and waits for a replica again. Check that the replicas are connected: see [How much a failover may lose](../how-to/redis-settings.md#how-much-a-failover-may-lose).',
  },
  redis_full: {
    meaning: "Redis's memory has reached the watermark, which is 80% by default, so the task was not stored.",
    action: 'Retry later. See [Redis is full](../runbook/redis-full.md).',
  },
  idempotency_full: {
    meaning:
      "Idempotency keys have used up their share of Redis's memory, which is 25% by default, and no earlier request with this key is remembered. The task was not stored.",
    action:
      'Retry after the time in `Retry-After`, or send the request without an Idempotency-Key. To prevent the problem, give keys a shorter life or a larger share: see [Idempotency keys](../how-to/http-api.md#idempotency-keys).',
  },
  unsafe_redis: {
    meaning: 'Redis may delete tasks because its `maxmemory-policy` is not `noeviction`. The task was not stored.',
    action:
      'Set the policy to `noeviction`. To use the server anyway, set `BULLPEN_API_ALLOW_EVICTION=true`. See [Redis is full](../runbook/redis-full.md).',
  },
  idempotency_key_reused: {
    meaning:
      'An earlier request to this queue or group had the same Idempotency-Key but another body, or a group with this id exists and has other settings or tasks. Nothing was stored.',
    action: 'Use a new key or id for each new task or group. Send exactly the same body when you repeat a request.',
  },
  unique_key_taken: {
    meaning: 'Another task has the unique key, and the request set `onConflict` to `error`. Nothing was stored.',
    action:
      "Look up the task with the problem's `taskId`, or choose another `onConflict`. See [Unique tasks](../how-to/unique-tasks.md).",
  },
  too_many_cancels: {
    meaning: 'The queue has 200 cancellations by filter that have not finished. Nothing was cancelled.',
    action:
      'Retry when one of them has finished, or use a filter that matches more tasks, such as a tag that they share.',
  },
  unsupported_redis: {
    meaning: 'The server is older than Redis 7.',
    action: 'Upgrade the server to Redis 7 or later, or to Valkey.',
  },
  incompatible_schema: {
    meaning: "The namespace's data in Redis was written by an incompatible version of Bullpen.",
    action: 'Let the old version finish its tasks, or use another namespace (`BULLPEN_NAMESPACE`).',
  },
  queue_draining: {
    meaning: 'The queue is being drained and does not accept new tasks.',
    action: 'Retry later, or resume the queue with `bullpen resume --queue QUEUE`.',
  },
  fleet_too_old: {
    meaning:
      'The task has a concurrency key and its queue has `fairness`, or its definition has `permits`, `concurrency` or `dependsOn`, but some workers of the queue are too old to start such tasks. `detail` names them. The task was not stored.',
    action:
      'Upgrade the workers before the producers. See [Give every tenant a fair share](../how-to/fair-turns.md#roll-it-out).',
  },
  queue_full: {
    meaning: 'The queue has reached one of its limits, so the task was not stored. `detail` names the limit.',
    action:
      'Retry after the time in `Retry-After`. If the queue stays full, add workers or raise the limit, which is `BULLPEN_API_QUEUE_MEMORY_SHARE` for a queue without a `maxBytes` of its own: see [Backpressure](../how-to/backpressure.md).',
  },
  enqueue_rate_exceeded: {
    meaning: 'The API key has enqueued as many tasks per period as its limit permits, so nothing was stored.',
    action:
      'Retry after the time in `Retry-After`. To raise the limit, see [Limits of an API key](../how-to/api-keys.md).',
  },
  shutting_down: {
    meaning: 'This process is shutting down.',
    action: 'Send the request to another replica. Load balancers do this when `/readyz` fails.',
  },
  internal_error: {
    meaning: 'An unexpected error occurred in the API.',
    action: "Search the API's log for the response's `X-Request-Id`.",
  },
  invalid_definition: {
    meaning: 'A task, queue, pipeline or catalogue definition is invalid. This error is thrown at start-up.',
    action: 'Fix the setting that the message names.',
  },
  invalid_duration: {
    meaning: 'A duration is not a number followed by a unit.',
    action: "Write `'500ms'`, `'30s'`, `'5m'`, `'2h'` or `'1d'`.",
  },
  invalid_configuration: {
    meaning: 'A setting is unknown, is invalid, or contradicts another one. This error is thrown at start-up.',
    action: 'Fix every setting that the message lists.',
  },
  invalid_handler: {
    meaning:
      'A task has no handler, or its handler was not created with `defineHandler`. This error is thrown at start-up. The attempt of a source has this code if its handler has not returned an iterable.',
    action: 'Fix the handler that the message names.',
  },
  isolation_unavailable: {
    meaning: 'The task is isolated in a thread or a child process, and what runs it has no isolator.',
    action: 'Run the task with `createWorker`, or pass an isolator to `processor`.',
  },
  illegal_transition: {
    meaning: 'Bullpen tried to change a state in a way that its table of transitions does not allow.',
    action: 'This is a bug in Bullpen. Please report it.',
  },
  wrong_state: {
    meaning: 'A method was called in a state that does not allow it, such as `start()` twice.',
    action: 'Create a new object, or await the previous call first.',
  },
  duplicate_child_key: {
    meaning: 'A handler used the same `childKey` for two child tasks with the same definition.',
    action: 'Give each child task of a definition its own `childKey`, such as a row number.',
  },
  invalid_result: {
    meaning: 'A `ctx.once` step returned a value that cannot be represented in JSON or is too large.',
    action: 'Return `null` or a small value, such as an id.',
  },
  stage_failed: {
    meaning: 'A function of a pipeline threw an error, which is the `cause`. The error names the stage and the item.',
    action:
      'Fix the function or the item. To process the other items anyway, [collect the errors](../how-to/pipelines.md#errors).',
  },
  source_failed: {
    meaning:
      'The source of a pipeline threw an error, which is the `cause`. All items that it had returned before have been processed.',
    action: 'Fix the source, and run the pipeline again.',
  },
  pipeline_cancelled: {
    meaning: 'The signal of the run aborted. `cause` is its reason. No function of the pipeline is still running.',
    action: 'None, if the cancellation was intended.',
  },
  unreadable_envelope: {
    meaning: 'A worker found a job that was written by another program or by a newer version of Bullpen.',
    action: 'Upgrade the workers before the producers, and make sure that no other program adds jobs to the queue.',
  },
  unreadable_payload: {
    meaning:
      'The input of a task or a schedule was encoded by a codec that this process does not have, or the codec could not decode it.',
    action:
      'Pass the same `codec` to the API and to all workers. As long as a task or a schedule is stored, keep the key that encoded it.',
  },
  input_gone: {
    meaning:
      'The run of a pipeline no longer keeps the input of its task, so the task is dead: its end had already been counted when it ran again, or Redis has lost data.',
    action: 'Start the pipeline again.',
  },
  invalid_item: {
    meaning:
      'The source of a pipeline has yielded an item that does not match the schema in its definition, or a cursor that is too long or missing.',
    action: 'Fix the source, and start the pipeline again. The items that it had yielded before have been processed.',
  },
  source_changed: {
    meaning:
      'The source of a pipeline was run again and did not yield the same items as before or, with cursors, began again at its first item or at the item at its cursor.',
    action:
      'Yield the same items for the same input. Or yield them with cursors, and begin after the item at the cursor that the source receives.',
  },
  source_replaced: {
    meaning:
      'An attempt of the source of a pipeline yielded items after a later attempt had begun. Its items were refused.',
    action: 'None. The later attempt continues after the last item that was accepted.',
  },
  lock_lost: {
    meaning: 'The attempt no longer owns its task, and another worker may be running the task.',
    action:
      'Do not catch this error. If it happens often, see [A stalled event loop](../runbook/event-loop-stalled.md).',
  },
}
