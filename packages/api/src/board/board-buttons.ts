// What the board's buttons do: the same operations as the API's own routes, which check the request and write its audit line.
//
// Bull Board's handlers are not used, because they change jobs through BullMQ, past the status index and the audit.
import { BullpenError, type DeadTaskAction } from '@bullpen/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendCommand } from '../handlers/commands.ts'
import { changeDeadTasks } from '../handlers/dead-tasks/dead-requests.ts'
import { deleteTask, retryTask } from '../handlers/dead-tasks/one-task.ts'
import type { ApiContext } from '../http/context.ts'
import { readEntry } from './error-kinds.ts'
import { isTab, TABS } from './tabs.ts'
import type { BoardQueue } from './task-queue-adapter.ts'

/** A request of the board's page. The parameters are those of Bull Board's route. */
export interface Press {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly params: {
    /** The name of an entry in the menu. */
    readonly queueName: string
    readonly jobId: string
    /** The name of a tab. */
    readonly queueStatus: string
  }
}

/** Returns the body of the response. @throws BullpenError, like the operation. */
export type Button = (press: Press) => Promise<unknown>

/** The routes of the buttons that work, by method and path. Every other route that changes something is refused. */
export function boardButtons(context: ApiContext, queues: readonly BoardQueue[]): ReadonlyMap<string, Button> {
  const send = (action: 'pause' | 'resume', queue: string, { request, reply }: Press) => {
    const body = { action, queue, by: request.requesterName }
    return sendCommand(context, { params: undefined, query: { wait: 0 }, body, request, reply })
  }
  /** Leaves queues alone that are in the state already, because a resume would also end a drain. */
  const sendToAll = async (action: 'pause' | 'resume', press: Press) => {
    for (const queue of queues) {
      const isPaused = await queue.isPaused()
      if (isPaused === (action === 'resume')) await send(action, queue.name, press)
    }
    return {}
  }
  const changeAll = (action: DeadTaskAction, reason: string): Button => {
    return async ({ request, reply, params: { queueName, queueStatus } }) => {
      if (!isTab(queueStatus) || TABS[queueStatus] !== 'dead') throw refusal(reason)
      const body = { ...readEntry(queueName), by: request.requesterName }
      const call = { params: undefined, query: { dryRun: false }, body, request, reply }
      const accepted = await changeDeadTasks(context, action, call)
      // The page shows `skipped` in a toast, with a text of ours (board-texts.ts).
      return { ...accepted, skipped: accepted.matching }
    }
  }
  const retryOne: Button = ({ request, reply, params }) => {
    const body = { by: request.requesterName }
    return retryTask(context, { params: { id: params.jobId }, query: undefined, body, request, reply })
  }
  const deleteOne: Button = ({ request, reply, params }) => {
    const query = { by: request.requesterName }
    return deleteTask(context, { params: { id: params.jobId }, query, body: undefined, request, reply })
  }

  return new Map<string, Button>([
    ['PUT /api/queues/:queueName/:jobId/retry', retryOne],
    ['PUT /api/queues/:queueName/:jobId/clean', deleteOne],
    ['PUT /api/queues/:queueName/retry/:queueStatus', changeAll('retry', 'only dead tasks can be retried')],
    ['PUT /api/queues/:queueName/clean/:queueStatus', changeAll('delete', DELETE)],
    ['PUT /api/queues/:queueName/pause', async (press) => send('pause', queueOf(press), press)],
    ['PUT /api/queues/:queueName/resume', async (press) => send('resume', queueOf(press), press)],
    ['PUT /api/queues/pause', async (press) => sendToAll('pause', press)],
    ['PUT /api/queues/resume', async (press) => sendToAll('resume', press)],
  ])
}

const DELETE =
  "only dead tasks can be deleted; other ended tasks are removed after their retention, and unfinished ones can be cancelled: 'bullpen cancel --queue' or POST /v1/tasks/cancel"
const LIMIT = "the board cannot limit a queue; use 'bullpen limit' or POST /v1/commands"
const MOVE = 'the board cannot change when a task starts, because its queue keeps that order'
const SCHEDULE = "the board cannot change schedules; use 'bullpen schedules' or /v1/schedules"
const PROMOTE = 'the board cannot start a scheduled or retrying task before it is due'

/** @throws BullpenError `forbidden` if the page shows a kind of error. */
function queueOf({ params }: Press): string {
  const { queue, fingerprint } = readEntry(params.queueName)
  if (fingerprint === undefined) return queue
  throw refusal(
    `this page shows only the dead tasks with one kind of error; open queue '${queue}' to pause or resume it`,
  )
}

/** Why a button does not work, and what to use instead. */
const REFUSALS: Readonly<Record<string, string>> = {
  'POST /api/queues/:queueName/add':
    "the board cannot add tasks, because their inputs must be checked against the catalogue; use 'bullpen enqueue' or POST /v1/tasks",
  'PUT /api/queues/:queueName/promote': PROMOTE,
  'PUT /api/queues/:queueName/:jobId/promote': PROMOTE,
  'PATCH /api/queues/:queueName/:jobId/delay': MOVE,
  'PATCH /api/queues/:queueName/:jobId/priority': MOVE,
  'PATCH /api/queues/:queueName/:jobId/update-data':
    "the board cannot change a task's input; retry a dead task with another input: 'bullpen dead retry' or POST /v1/tasks/{id}/retry",
  'PUT /api/queues/:queueName/empty':
    "the board cannot empty a queue; cancel its waiting tasks: 'bullpen cancel --queue' or POST /v1/tasks/cancel",
  'PUT /api/queues/:queueName/obliterate':
    "the board cannot delete a queue; cancel its waiting tasks with 'bullpen cancel --queue', and remove it from the catalogue",
  'PUT /api/queues/:queueName/concurrency': LIMIT,
  'PUT /api/queues/:queueName/rate-limit': LIMIT,
  'PUT /api/queues/:queueName/rate-limit/release': LIMIT,
  'PUT /api/queues/:queueName/job-schedulers/:schedulerId/remove': SCHEDULE,
  'PUT /api/queues/:queueName/job-schedulers/:schedulerId/run': SCHEDULE,
  'PATCH /api/queues/:queueName/job-schedulers/:schedulerId': SCHEDULE,
}

/** Refuses a button that does not work. `route` is the method and the path of its route. */
export function refusedButton(route: string): Button {
  const reason = REFUSALS[route] ?? 'the board cannot make this change; use the API or the CLI'
  return async () => {
    throw refusal(reason)
  }
}

function refusal(reason: string): BullpenError {
  return new BullpenError('forbidden', reason)
}
