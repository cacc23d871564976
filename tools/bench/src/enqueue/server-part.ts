// Runs one of the servers that the benchmark `enqueue` compares: Bullpen's API, the server that a user would write with BullMQ, or
// the same server without Redis.
import type { AddressInfo } from 'node:net'
import { createApi } from '@bullpen/api'
import { Queue } from 'bullmq'
import fastify from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ownCpu, partOptions, reportReady } from './part.ts'
import { API_KEY, catalogue, SIZE_LIMIT, welcome } from './workload.ts'

export interface ServerOptions {
  readonly server: ServerName
  readonly redisUrl: string
  readonly namespace: string
}

/** The servers. Each one listens on a free port, which it returns. */
const SERVERS = {
  async bullpen({ redisUrl, namespace }: ServerOptions): Promise<number> {
    const config = { redisUrl, namespace, keys: [API_KEY], port: 0, metricsPort: 0 }
    const api = await createApi({ catalogue, config })
    const { url } = await api.listen()
    return Number(new URL(url).port)
  },

  async bullmq({ redisUrl, namespace }: ServerOptions): Promise<number> {
    const queue = new Queue(welcome.queue, { connection: { url: redisUrl }, prefix: `{${namespace}}` })
    await queue.waitUntilReady()
    return listen(async (task, input) => {
      const job = await queue.add(task, input, { sizeLimit: SIZE_LIMIT })
      return job.id ?? ''
    })
  },

  fastify: (): Promise<number> => listen(async () => '1'),
} as const satisfies Record<string, (options: ServerOptions) => Promise<number>>
export type ServerName = keyof typeof SERVERS

/** Starts a server without Bullpen, which validates the request and stores the task with `add`. */
async function listen(add: (task: string, input: object) => Promise<string>): Promise<number> {
  const app = fastify({ logger: false }).withTypeProvider<ZodTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.post(
    '/v1/tasks',
    {
      schema: {
        body: z.object({ task: z.literal(welcome.name), input: welcome.input }),
        response: { 202: z.object({ id: z.string() }) },
      },
    },
    async ({ body }, reply) => {
      const id = await add(body.task, body.input)
      reply.code(202)
      return { id }
    },
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}

const options = partOptions<ServerOptions>()
reportReady(await SERVERS[options.server](options), { cpu: ownCpu })
