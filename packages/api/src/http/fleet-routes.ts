// The routes of the fleet: what is told of it, and the commands that steer it.
import {
  commandPageSchema,
  commandQuerySchema,
  commandRequestSchema,
  commandsQuerySchema,
  commandViewSchema,
  commandWaitSchema,
  fleetQuerySchema,
  fleetViewSchema,
  poolPageSchema,
  poolQuerySchema,
  slotPageSchema,
  slotQuerySchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { listCommands } from '../handlers/list-commands.ts'
import { listPools } from '../handlers/list-pools.ts'
import { listWorkers } from '../handlers/list-workers.ts'
import { sendCommand } from '../handlers/send-command.ts'
import { showCommand } from '../handlers/show-command.ts'
import { showFleet } from '../handlers/show-fleet.ts'
import type { ApiContext } from './context.ts'
import { type Route, route } from './route.ts'

const LOOKED_UP = ['invalid_request', 'unauthorized', 'queue_not_found', 'redis_unavailable'] as const

export function fleetRoutes(context: ApiContext): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/fleet',
      access: 'browser',
      tag: 'Fleet',
      operationId: 'showFleet',
      summary: 'Show the fleet',
      description:
        'The queues of the catalogue, and every worker with its pools. A worker that has been silent for three signs of ' +
        'life is not `alive`; it is shown for a minute as it was. All times are in the time of Redis, whatever the ' +
        "worker's own clock says. With `queue`: this queue, and the workers that work it.",
      query: fleetQuerySchema,
      answers: { 200: { description: 'The fleet.', schema: fleetViewSchema } },
      problems: LOOKED_UP,
      handle: showFleet(context),
    }),
    route({
      method: 'GET',
      path: '/v1/pools',
      access: 'browser',
      tag: 'Fleet',
      operationId: 'listPools',
      summary: 'List the pools of live workers',
      query: poolQuerySchema,
      answers: { 200: { description: 'All of them.', schema: poolPageSchema } },
      problems: LOOKED_UP,
      handle: listPools(context),
    }),
    route({
      method: 'GET',
      path: '/v1/workers',
      access: 'browser',
      tag: 'Fleet',
      operationId: 'listWorkers',
      summary: 'List the slots of live workers',
      description: 'Each with its state, since when, and its task; as of the last sign of life of its worker.',
      query: slotQuerySchema,
      answers: { 200: { description: 'All of them.', schema: slotPageSchema } },
      problems: LOOKED_UP,
      handle: listWorkers(context),
    }),
    route({
      method: 'POST',
      path: '/v1/commands',
      access: 'key',
      tag: 'Fleet',
      operationId: 'sendCommand',
      summary: 'Command the fleet',
      description:
        'Pauses, resumes or drains a queue, a worker or one pool; stops a slot; changes how much a pool or a whole queue ' +
        'runs at once. The command is kept before any worker is told. When the wait is over and answers are missing, the ' +
        '`outcome` is `pending`: GET /v1/commands/{id}. With an `id` of its own a request may be sent again: the same id and ' +
        'order twice is one command.',
      query: commandWaitSchema,
      body: commandRequestSchema,
      answers: {
        200: { description: 'Kept, and what has come of it: look at `outcome`.', schema: commandViewSchema },
      },
      problems: [
        'malformed_json',
        'invalid_request',
        'unauthorized',
        'queue_not_found',
        'worker_not_found',
        'payload_too_large',
        'unsupported_media_type',
        'command_id_reused',
        'redis_unavailable',
      ],
      handle: sendCommand(context),
    }),
    route({
      method: 'GET',
      path: '/v1/commands',
      access: 'browser',
      tag: 'Fleet',
      operationId: 'listCommands',
      summary: 'List the newest commands',
      description: 'The audit: who asked for what, when, and what came of it. The newest first.',
      query: commandsQuerySchema,
      answers: { 200: { description: 'As many as were asked for.', schema: commandPageSchema } },
      problems: ['invalid_request', 'unauthorized', 'redis_unavailable'],
      handle: listCommands(context),
    }),
    route({
      method: 'GET',
      path: '/v1/commands/:id',
      access: 'browser',
      tag: 'Fleet',
      operationId: 'showCommand',
      summary: 'Look a command up, or wait for its answers',
      params: z.object({ id: z.string().describe("The command's id.") }),
      query: commandQuerySchema,
      answers: { 200: { description: 'The command.', schema: commandViewSchema } },
      problems: ['invalid_request', 'unauthorized', 'command_not_found', 'redis_unavailable'],
      handle: showCommand(context),
    }),
  ]
}
