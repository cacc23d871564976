// Runs one of the servers that the benchmark `enqueue` compares: Bullpen's API, the server that a user would write with BullMQ, or
// the same server without Redis.
import type { AddressInfo } from 'node:net'
import { Queue } from 'bullmq'
import fastify from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'
import { API_KEY, BODY_LIMIT, catalogue, SIZE_LIMIT, welcome } from './workload.ts'

export interface ServerOptions {
  readonly server: ServerName
  readonly redisUrl: string
  readonly namespace: string
}

export interface Listening {
  readonly port: number
  /** The address of the metrics. Only Bullpen's API has one. */
  readonly metricsUrl?: string
}

/** The servers. Each one listens on a free port. */
const SERVERS = {
  async bullpen({ redisUrl, namespace }: ServerOptions): Promise<Listening> {
    // The peers don't load Bullpen's API.
    const { createApi } = await import('@bullpen/api')
    const config = { redisUrl, namespace, keys: [API_KEY], port: 0, metricsPort: 0 }
    const api = await createApi({ catalogue, config })
    const { url, metricsUrl } = await api.listen()
    return { port: Number(new URL(url).port), metricsUrl }
  },

  async bullmq({ redisUrl, namespace }: ServerOptions): Promise<Listening> {
    const queue = new Queue(welcome.queue, { connection: { url: redisUrl }, prefix: `{${namespace}}` })
    await queue.waitUntilReady()
    const opts = { sizeLimit: SIZE_LIMIT }
    return listen(
      ({ task, input }) => queue.add(task, input, opts),
      (tasks) => queue.addBulk(tasks.map(({ task, input }) => ({ name: task, data: input, opts }))),
    )
  },

  fastify: (): Promise<Listening> =>
    listen(
      async () => ({ id: '1' }),
      async (tasks) => tasks.map(() => ({ id: '1' })),
    ),
} as const satisfies Record<string, (options: ServerOptions) => Promise<Listening>>
export type ServerName = keyof typeof SERVERS

const taskSchema = z.object({ task: z.literal(welcome.name), input: welcome.input })
type Task = z.infer<typeof taskSchema>
type Added = { readonly id?: string | undefined }

/** Starts a server without Bullpen, which validates requests and stores their tasks with these functions. */
async function listen(
  add: (task: Task) => Promise<Added>,
  addBulk: (tasks: readonly Task[]) => Promise<readonly Added[]>,
): Promise<Listening> {
  const app = fastify({ logger: false, bodyLimit: BODY_LIMIT }).withTypeProvider<ZodTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.post(
    '/v1/tasks',
    { schema: { body: taskSchema, response: { 202: z.object({ id: z.string() }) } } },
    async ({ body }, reply) => {
      const { id = '' } = await add(body)
      reply.code(202)
      return { id }
    },
  )
  app.post(
    '/v1/tasks/bulk',
    {
      schema: {
        body: z.object({ tasks: z.array(taskSchema) }),
        response: { 200: z.object({ failed: z.int(), ids: z.array(z.string()) }) },
      },
    },
    async ({ body }) => ({ failed: 0, ids: (await addBulk(body.tasks)).map(({ id = '' }) => id) }),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port }
}

const options = partOptions<ServerOptions>()
reportReady(await SERVERS[options.server](options), { cpu: ownCpu })
