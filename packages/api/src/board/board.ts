// Serves Bull Board at /board. The board is read-only, requires a login, and shows tasks in a readable form.
import { BullpenError, type Log } from '@bullpen/contract'
import type { FastifyInstance } from 'fastify'
import { makeReadOnly } from '../auth/read-only-pages.ts'
import { sendProblem } from '../http/problems/problem.ts'
import { type BoardRoute, isReading, readingRoute } from './board-routes.ts'
import { boardTexts } from './board-texts.ts'
import { BULL_BOARD_PACKAGES, BULL_BOARD_VERSION, type BullBoard, TEXTS_PATH } from './bull-board.ts'
import { type BoardQueue, type BoardReads, taskQueueAdapter } from './task-queue-adapter.ts'

export interface BoardOptions {
  readonly queues: readonly BoardQueue[]
  readonly reads: BoardReads
  readonly log: Log
}

const PREFIX = '/board'
const FONT_LINK = /<link href="https:\/\/fonts\.googleapis\.com[^>]*>\n?/

/** Adds the board, or if Bull Board is not installed, pages that say how to install it. */
export async function addBoard(
  app: FastifyInstance,
  bullBoard: BullBoard | undefined,
  options: BoardOptions,
): Promise<void> {
  if (bullBoard === undefined) await addMissingBoard(app)
  else await addBullBoard(app, bullBoard, options)
}

/** Adds a /board route that responds with the command for installing Bull Board. */
async function addMissingBoard(app: FastifyInstance): Promise<void> {
  const packages = BULL_BOARD_PACKAGES.map((name) => `${name}@${BULL_BOARD_VERSION}`)
  const detail = `Bull Board is not installed; run: npm install ${packages.join(' ')}`
  await app.register(async (scope) => {
    makeReadOnly(scope)
    for (const path of [PREFIX, `${PREFIX}/*`]) {
      scope.get(path, async (request, reply) =>
        sendProblem(request, reply, new BullpenError('route_not_found', detail)),
      )
    }
  })
}

async function addBullBoard(
  app: FastifyInstance,
  { createBullBoard, BullMQAdapter, FastifyAdapter, texts }: BullBoard,
  { queues, reads, log }: BoardOptions,
): Promise<void> {
  const TaskQueueAdapter = taskQueueAdapter(BullMQAdapter)
  class BoardServer extends FastifyAdapter {
    override setApiRoutes(routes: BoardRoute[]) {
      const options = { queues, reads, TaskQueueAdapter }
      return super.setApiRoutes(routes.map((route) => (isReading(route) ? readingRoute(route, options) : route)))
    }
  }
  const server = new BoardServer()
  createBullBoard({
    queues: queues.map((queue) => new TaskQueueAdapter({ queue, reads, shown: new Map() })),
    serverAdapter: server,
    options: { uiConfig: { boardTitle: 'Bullpen', miscLinks: [{ text: 'API reference', url: '/reference' }] } },
  })
  server.setErrorHandler((error) => {
    log.error({ err: error }, 'cannot show the board')
    return {
      status: 500,
      body: { error: { key: 'ERRORS.REDIS_UNAVAILABLE' as const }, message: 'Redis did not respond' },
    }
  })
  const ownTexts = JSON.stringify(boardTexts(texts))
  await app.register(async (scope) => {
    makeReadOnly(scope)
    scope.addHook('onSend', async (_request, reply, payload) =>
      // The page links to fonts from Google, which the content security policy forbids. Without the link, it uses the system's
      // fonts.
      typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
        ? payload.replace(FONT_LINK, '')
        : payload,
    )
    scope.get(`${PREFIX}/${TEXTS_PATH}`, async (_request, reply) =>
      reply.type('application/json; charset=utf-8').send(ownTexts),
    )
    server.setBasePath(PREFIX)
    await scope.register(server.registerPlugin(), { prefix: PREFIX })
  })
}
