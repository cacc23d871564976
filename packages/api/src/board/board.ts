// Bull Board at /board: read-only, behind the login, with tasks shown in our words.
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import type { Log } from '@bullpen/contract'
import type { FastifyInstance } from 'fastify'
import { preparePages } from '../http/page-guard.ts'
import { taskPath } from '../views/links.ts'
import { dataWords, jobWords, returnValueWords } from './board-formatting.ts'

/** BullMQ's queue, by way of the adapter: nobody here imports bullmq. */
export type BoardQueue = ConstructorParameters<typeof BullMQAdapter>[0]

const PREFIX = '/board'
const FONT_LINK = /<link href="https:\/\/fonts\.googleapis\.com[^>]*>\n?/

export async function addBoard(app: FastifyInstance, queues: readonly BoardQueue[], log: Log): Promise<void> {
  const server = new FastifyAdapter()
  createBullBoard({
    queues: queues.map((queue) => new TaskQueueAdapter(queue)),
    serverAdapter: server,
    options: { uiConfig: { boardTitle: 'Bullpen', miscLinks: [{ text: 'API reference', url: '/reference' }] } },
  })
  server.setErrorHandler((error) => {
    log.error({ err: error }, 'the board could not be shown')
    return {
      status: 500,
      body: { error: { key: 'ERRORS.REDIS_UNAVAILABLE' as const }, message: 'Redis did not answer' },
    }
  })
  await app.register(async (scope) => {
    preparePages(scope)
    scope.addHook('onSend', async (_request, reply, payload) =>
      // The page asks Google for its fonts; the policy forbids it, and the look falls back to the system's.
      typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
        ? payload.replace(FONT_LINK, '')
        : payload,
    )
    server.setBasePath(PREFIX)
    await scope.register(server.registerPlugin(), { prefix: PREFIX })
  })
}

type BoardJob = Awaited<ReturnType<BullMQAdapter['getJobs']>>[number]

/** The board's view of a queue, with our words put in where jobs are read. */
class TaskQueueAdapter extends BullMQAdapter {
  constructor(queue: BoardQueue) {
    super(queue, {
      // Its add, clean, promote and update would go round the state model.
      readOnlyMode: true,
      allowRetries: false,
      externalJobUrl: (job) => ({ displayText: 'In the API', href: taskPath(String(job.id)) }),
    })
    this.setFormatter('data', dataWords)
    this.setFormatter('returnValue', returnValueWords)
  }

  override async getJob(id: string) {
    const job = await super.getJob(id)
    return job === undefined ? undefined : inWords(job)
  }

  override async getJobs(...which: Parameters<BullMQAdapter['getJobs']>) {
    return (await super.getJobs(...which)).map(inWords)
  }
}

/** The job is read afresh for each page, so nobody else sees the change. */
function inWords(job: BoardJob): BoardJob {
  const plain = job.toJSON.bind(job)
  job.toJSON = () => jobWords(plain())
  return job
}
