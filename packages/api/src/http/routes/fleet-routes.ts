// Defines the routes that show the fleet, check the installation, and find what Redis holds without an owner, and the commands that
// control the fleet.
import {
  commandPageSchema,
  commandQuerySchema,
  commandRequestSchema,
  commandsQuerySchema,
  commandViewSchema,
  commandWaitSchema,
  deleteOrphansSchema,
  diagnosisSchema,
  fleetQuerySchema,
  fleetViewSchema,
  limitsQuerySchema,
  limitsViewSchema,
  orphanPageSchema,
  orphansDeletedSchema,
  orphansQuerySchema,
  poolPageSchema,
  poolQuerySchema,
  queuePageSchema,
  queuesQuerySchema,
  slotPageSchema,
  slotQuerySchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { listCommands, sendCommand, showCommand } from '../../handlers/commands.ts'
import { showDiagnosis } from '../../handlers/diagnosis/show-diagnosis.ts'
import { listPools, listSlots, showFleet } from '../../handlers/fleet.ts'
import { listQueues } from '../../handlers/list-queues.ts'
import { deleteOrphans, findOrphans } from '../../handlers/orphans/orphans.ts'
import { showLimits } from '../../handlers/show-limits.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const LOOKED_UP = ['queue_not_found', 'redis_unavailable'] as const

const routes = routesOf({ tag: 'Fleet' })

export function fleetRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.get('/v1/fleet', {
      operationId: 'showFleet',
      summary: 'Show the fleet',
      description:
        "Returns the catalogue's queues, and every worker with its pools. A worker that has missed three " +
        "heartbeats is not `alive`, but its last status remains visible for a minute. All times come from Redis's " +
        'clock. With `queue`, returns only this queue and the workers that have a pool on it.',
      query: fleetQuerySchema,
      responses: { 200: { description: 'The fleet.', schema: fleetViewSchema } },
      problems: LOOKED_UP,
      handle: (call) => showFleet(context, call),
    }),
    routes.get('/v1/queues', {
      operationId: 'listQueues',
      summary: 'List the queues with their tasks and rates',
      description:
        'Returns each queue with its tasks by status, the most frequent kinds of error among its dead tasks, its oldest ' +
        'waiting task, the rates at which tasks are enqueued and end, its limits, and its slots. The first request to an API ' +
        'process takes 1 s, because the process must measure the rates.',
      query: queuesQuerySchema,
      responses: { 200: { description: 'All matching queues.', schema: queuePageSchema } },
      problems: LOOKED_UP,
      handle: listQueues(context),
    }),
    routes.get('/v1/queues/:queue/limits', {
      operationId: 'showLimits',
      summary: 'Show the limits of a queue, and which concurrency keys wait',
      description:
        'Returns the limits that are in force and what has set each of them, and the concurrency keys with the most waiting tasks or, with ' +
        '`sort=active`, with the most active ones. Each key shows its limits, and which of them keep it from starting a task. With ' +
        '`concurrencyKey`, returns only this key. The numbers of different keys may be from different moments. A page that is sorted by ' +
        'backlog examines up to 200,000 keys that have waiting tasks, 1,000 in each round trip to Redis. To change limits, send the command ' +
        '`limit` to POST /v1/commands.',
      params: z.object({ queue: z.string().describe('The name of the queue.') }),
      query: limitsQuerySchema,
      responses: { 200: { description: 'The limits, and one page of the keys.', schema: limitsViewSchema } },
      problems: ['invalid_cursor', 'queue_not_found', 'redis_unavailable'],
      handle: showLimits(context),
    }),
    routes.get('/v1/pools', {
      operationId: 'listPools',
      summary: 'List the pools of live workers',
      query: poolQuerySchema,
      responses: { 200: { description: 'All matching pools.', schema: poolPageSchema } },
      problems: LOOKED_UP,
      handle: (call) => listPools(context, call),
    }),
    routes.get('/v1/slots', {
      operationId: 'listSlots',
      summary: 'List the slots of live workers',
      description:
        'Returns each slot with its state, the time at which it entered that state, and its task. The data comes ' +
        "from the worker's last heartbeat.",
      query: slotQuerySchema,
      responses: { 200: { description: 'All matching slots.', schema: slotPageSchema } },
      problems: LOOKED_UP,
      handle: (call) => listSlots(context, call),
    }),
    routes.post('/v1/commands', {
      operationId: 'sendCommand',
      summary: 'Send a command to the fleet',
      description:
        "Pauses, resumes or drains a queue, a worker or a single pool, stops a slot, or changes a pool's " +
        "concurrency or a queue's limits. The command is stored before it is sent to the workers. If some workers " +
        'have not responded when the wait is over, `outcome` is `pending`. Use GET /v1/commands/{id} to see the ' +
        'remaining responses. The request is idempotent if it has an `id`.',
      query: commandWaitSchema,
      body: commandRequestSchema,
      responses: { 200: { description: 'The command is stored. Check its `outcome`.', schema: commandViewSchema } },
      problems: ['queue_not_found', 'worker_not_found', 'command_id_reused', 'redis_unavailable'],
      handle: (call) => sendCommand(context, call),
    }),
    routes.get('/v1/commands', {
      operationId: 'listCommands',
      summary: 'List the newest commands',
      description:
        'Returns the audit log, newest command first. The log shows who sent each command, when, and with what ' +
        'outcome.',
      query: commandsQuerySchema,
      responses: { 200: { description: 'The newest commands.', schema: commandPageSchema } },
      problems: ['redis_unavailable'],
      handle: (call) => listCommands(context, call),
    }),
    routes.get('/v1/commands/:id', {
      operationId: 'showCommand',
      summary: "Show a command, or wait for the workers' responses",
      params: z.object({ id: z.string().describe("The command's id.") }),
      query: commandQuerySchema,
      responses: { 200: { description: 'The command.', schema: commandViewSchema } },
      problems: ['command_not_found', 'redis_unavailable'],
      handle: (call) => showCommand(context, call),
    }),
    routes.get('/v1/diagnosis', {
      access: 'key',
      operationId: 'diagnose',
      summary: 'Find what is wrong with the installation',
      description:
        'Examines Redis, the configuration, the versions and the workers of the fleet, the queues and the schedules. Returns what is wrong, ' +
        'why it matters, and what to do about it. If Redis cannot be used, that is the only finding. Nothing is changed. The request takes as long as six round trips to Redis, and sends about ten commands or pipelines for each queue, whatever the number of tasks.',
      responses: {
        200: { description: 'The findings, and the checks that have found nothing.', schema: diagnosisSchema },
      },
      problems: [],
      handle: showDiagnosis(context),
    }),
    routes.get('/v1/orphans', {
      access: 'key',
      operationId: 'findOrphans',
      summary: 'Find keys in Redis that belong to nothing',
      description:
        "Examines a part of the namespace's keys and entries for about 3 s, and returns those that belong to nothing, such as the lock of a " +
        'task that does not exist. Each of them is examined again, after at least a second, before it is returned. At least half of ' +
        "Redis's time is left for other clients. Follow `next` until it is absent. A key may be returned twice. The search changes nothing.",
      query: orphansQuerySchema,
      responses: {
        200: { description: 'One page, which may be empty although more pages follow.', schema: orphanPageSchema },
      },
      problems: ['invalid_cursor', 'redis_unavailable'],
      handle: (call) => findOrphans(context, call),
    }),
    routes.post('/v1/orphans/delete', {
      operationId: 'deleteOrphans',
      summary: 'Delete keys in Redis that belong to nothing',
      description:
        'Deletes those of the named keys and entries that have no owner. Whether each of them has an owner is decided again, in the same ' +
        'atomic step. Keys that are listed for another reason are kept. Repeating the request changes nothing.',
      body: deleteOrphansSchema,
      responses: { 200: { description: 'What was deleted, and what was kept.', schema: orphansDeletedSchema } },
      problems: ['redis_unavailable'],
      handle: (call) => deleteOrphans(context, call),
    }),
  ]
}
