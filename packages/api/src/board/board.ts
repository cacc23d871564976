// Serves Bull Board at /board. The board requires a login, shows tasks in a readable form, and is read-only unless a setting allows
// its buttons.
import { BullpenError, type Log, type Problem } from '@bullpen/contract'
import { PROBLEM_CONTENT_TYPE } from '@bullpen/contract/internal'
import type { FastifyInstance } from 'fastify'
import { makePages, onlyOwnPages, readOnly } from '../auth/browser-pages.ts'
import { opensPage, sendPage } from '../http/page.ts'
import { sendProblem } from '../http/problems/problem.ts'
import type { Button, Press } from './board-buttons.ts'
import { type BoardRoute, type ChangingRoute, changingRoutes, isReading, readingRoute } from './board-routes.ts'
import { boardTexts } from './board-texts.ts'
import { BULL_BOARD_PACKAGES, BULL_BOARD_VERSION, type BullBoard } from './bull-board.ts'
import { type BoardQueue, type BoardReads, boardAdapters } from './task-queue-adapter.ts'

export interface BoardOptions {
  readonly queues: readonly BoardQueue[]
  readonly reads: BoardReads
  readonly log: Log
  /** What the buttons do, or undefined if the board is read-only. */
  readonly buttons: ReadonlyMap<string, Button> | undefined
  /** The address of the dashboards, to which the board links. */
  readonly grafanaUrl?: string | undefined
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

/** Adds a /board route that responds with the command for installing Bull Board, to browsers on a page. */
async function addMissingBoard(app: FastifyInstance): Promise<void> {
  const packages = BULL_BOARD_PACKAGES.map((name) => `${name}@${BULL_BOARD_VERSION}`)
  const command = `npm install ${packages.join(' ')}`
  const detail = `Bull Board is not installed; run: ${command}`
  const content = `<p>Bull Board is not installed. To install it, run:</p>
<pre>${command}</pre>
<p><a href="/reference">Reference</a>: the routes of this API</p>`
  await app.register(async (scope) => {
    makePages(scope, readOnly)
    for (const path of [PREFIX, `${PREFIX}/*`]) {
      scope.get(path, async (request, reply) => {
        reply.header('vary', 'Accept')
        return opensPage(request)
          ? sendPage(reply, { status: 404, title: 'Bullpen: no board', content })
          : sendProblem(request, reply, new BullpenError('route_not_found', detail))
      })
    }
  })
}

async function addBullBoard(
  app: FastifyInstance,
  { createBullBoard, BullMQAdapter, FastifyAdapter, texts }: BullBoard,
  { queues, reads, log, buttons, grafanaUrl }: BoardOptions,
): Promise<void> {
  const adapters = boardAdapters(BullMQAdapter)
  const allowsChanges = buttons !== undefined
  /** Bull Board itself serves only the routes that read. */
  class BoardServer extends FastifyAdapter {
    changing: readonly ChangingRoute[] = []

    override setApiRoutes(routes: BoardRoute[]) {
      this.changing = routes.filter((route) => !isReading(route)).flatMap((route) => changingRoutes(route, buttons))
      const options = { queues, reads, allowsChanges, adapters }
      return super.setApiRoutes(routes.filter(isReading).map((route) => readingRoute(route, options)))
    }
  }
  const server = new BoardServer()
  const miscLinks = [
    { text: 'API reference', url: '/reference' },
    ...(grafanaUrl === undefined ? [] : [{ text: 'Dashboards', url: grafanaUrl }]),
  ]
  createBullBoard({
    queues: queues.map((queue) => new adapters.TaskQueueAdapter({ queue, reads, allowsChanges, shown: new Map() })),
    serverAdapter: server,
    options: { uiConfig: { boardTitle: 'Bullpen', miscLinks } },
  })
  server.setErrorHandler((error) => {
    // A path that leads out of the folder of the static files, for example. The API's own handler responds with a problem.
    if (isCallersMistake(error)) throw error
    log.error({ err: error }, 'cannot show the board')
    return {
      status: 500,
      body: { error: { key: 'ERRORS.REDIS_UNAVAILABLE' as const }, message: 'Redis did not respond' },
    }
  })
  await app.register(async (scope) => {
    makePages(scope, buttons === undefined ? readOnly : onlyOwnPages)
    scope.addHook('onSend', async (request, reply, payload) => {
      if (typeof payload !== 'string') return payload
      const type = String(reply.getHeader('content-type'))
      // The page links to fonts from Google, which the content security policy forbids. Without the link, it uses the system's
      // fonts.
      if (type.startsWith('text/html')) return payload.replace(FONT_LINK, '')
      return type === PROBLEM_CONTENT_TYPE && request.url.startsWith(`${PREFIX}/api/`) ? withToast(payload) : payload
    })
    for (const [path, given] of texts) {
      const own = JSON.stringify(boardTexts(given))
      scope.get(`${PREFIX}/${path}`, async (_request, reply) => reply.type('application/json; charset=utf-8').send(own))
    }
    for (const { method, url, button } of server.changing) {
      scope.route({
        method,
        url: `${PREFIX}${url}`,
        handler: async (request, reply) => button({ request, reply, params: request.params as Press['params'] }),
      })
    }
    server.setBasePath(PREFIX)
    await scope.register(server.registerPlugin(), { prefix: PREFIX })
  })
}

function isCallersMistake({ statusCode }: Error & { readonly statusCode?: number }): boolean {
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500
}

/** Adds to a problem of the board's own API what Bull Board's pages show in a toast: `error` as its title, and `message` below. */
function withToast(problem: string): string {
  const { title, detail, ...rest } = JSON.parse(problem) as Problem
  return JSON.stringify({ ...rest, title, detail, error: title, message: detail })
}
