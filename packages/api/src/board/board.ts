// Serves Bull Board at /board. The board is read-only, requires a login, and shows tasks in a readable form.
import { BullpenError, type Log } from '@bullpen/contract'
import { taskPath } from '@bullpen/contract/internal'
import type { FastifyInstance } from 'fastify'
import { makeReadOnly } from '../auth/read-only-pages.ts'
import { sendProblem } from '../http/problems/problem.ts'
import { formatData, formatJob, formatReturnValue } from './board-formatting.ts'
import { BULL_BOARD_PACKAGES, BULL_BOARD_VERSION, type BullBoard, loadBullBoard } from './bull-board.ts'

type Adapter = InstanceType<BullBoard['BullMQAdapter']>
/** The type of BullMQ's queue, taken from the adapter's parameter because only packages/bullmq may import bullmq. */
export type BoardQueue = ConstructorParameters<BullBoard['BullMQAdapter']>[0]

const PREFIX = '/board'
const FONT_LINK = /<link href="https:\/\/fonts\.googleapis\.com[^>]*>\n?/

export async function addBoard(
  app: FastifyInstance,
  queues: readonly BoardQueue[],
  log: Log,
  load: typeof loadBullBoard = loadBullBoard,
): Promise<void> {
  const bullBoard = await load()
  if (bullBoard === undefined) await addMissingBoard(app)
  else await addBullBoard(app, bullBoard, queues, log)
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
  { createBullBoard, BullMQAdapter, FastifyAdapter }: BullBoard,
  queues: readonly BoardQueue[],
  log: Log,
): Promise<void> {
  const server = new FastifyAdapter()
  const TaskQueueAdapter = taskQueueAdapter(BullMQAdapter)
  createBullBoard({
    queues: queues.map((queue) => new TaskQueueAdapter(queue)),
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
  await app.register(async (scope) => {
    makeReadOnly(scope)
    scope.addHook('onSend', async (_request, reply, payload) =>
      // The page links to fonts from Google, which the content security policy forbids. Without the link, it uses the system's
      // fonts.
      typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
        ? payload.replace(FONT_LINK, '')
        : payload,
    )
    server.setBasePath(PREFIX)
    await scope.register(server.registerPlugin(), { prefix: PREFIX })
  })
}

type BoardJob = Awaited<ReturnType<Adapter['getJobs']>>[number]

/** Creates the class at run time, because its base class is loaded at run time. */
function taskQueueAdapter(BullMQAdapter: BullBoard['BullMQAdapter']) {
  return class TaskQueueAdapter extends BullMQAdapter {
    constructor(queue: BoardQueue) {
      super(queue, {
        // The board's add, clean, promote and update would bypass the state model.
        readOnlyMode: true,
        allowRetries: false,
        externalJobUrl: (job) => ({ displayText: 'In the API', href: taskPath(String(job.id)) }),
      })
      this.setFormatter('data', formatData)
      this.setFormatter('returnValue', formatReturnValue)
    }

    override async getJob(id: string) {
      const job = await super.getJob(id)
      return job === undefined ? undefined : formatted(job)
    }

    override async getJobs(...which: Parameters<Adapter['getJobs']>) {
      return (await super.getJobs(...which)).map(formatted)
    }
  }
}

/** Changes the job in place, which is safe because the job was read only for this page. */
function formatted(job: BoardJob): BoardJob {
  const toJson = job.toJSON.bind(job)
  job.toJSON = () => formatJob(toJson())
  return job
}
