// Runs the server that a user would write with fastify and plain BullMQ to enqueue tasks and wait for their results.
import type { AddressInfo } from 'node:net'
import { Job, Queue, QueueEvents } from 'bullmq'
import fastify from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { Listening } from '../enqueue/server-part.ts'
import { SIZE_LIMIT, welcome } from '../enqueue/workload.ts'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'

export interface PeerOptions {
  readonly redisUrl: string
  readonly namespace: string
}

const { redisUrl, namespace } = partOptions<PeerOptions>()
const shared = { connection: { url: redisUrl }, prefix: `{${namespace}}` }
const queue = new Queue(welcome.queue, shared)
const events = new QueueEvents(welcome.queue, shared)
// Every request that waits adds listeners to both.
for (const emitter of [queue, events]) emitter.setMaxListeners(0)
await Promise.all([queue.waitUntilReady(), events.waitUntilReady()])

const bodySchema = z.object({ task: z.literal(welcome.name), input: welcome.input })
const querySchema = z.object({ wait: z.coerce.number().optional() })
const idSchema = z.object({ id: z.string() })
const resultSchema = z.object({ id: z.string(), status: z.literal('completed'), output: welcome.output })

const app = fastify({ logger: false }).withTypeProvider<ZodTypeProvider>()
app.setValidatorCompiler(validatorCompiler)
app.setSerializerCompiler(serializerCompiler)

/** Waits for the result of a job at most for these seconds. */
async function resultOf(job: Job, seconds: number) {
  const output: z.infer<typeof welcome.output> = await job.waitUntilFinished(events, seconds * 1_000)
  return { id: job.id ?? '', status: 'completed' as const, output }
}

app.post(
  '/v1/tasks',
  { schema: { body: bodySchema, querystring: querySchema, response: { 200: resultSchema, 202: idSchema } } },
  async ({ body, query }, reply) => {
    const job = await queue.add(body.task, body.input, { sizeLimit: SIZE_LIMIT })
    if (query.wait !== undefined) return resultOf(job, query.wait)
    reply.code(202)
    return { id: job.id ?? '' }
  },
)
app.get(
  '/v1/tasks/:id',
  { schema: { params: idSchema, querystring: querySchema, response: { 200: resultSchema, 404: idSchema } } },
  async ({ params, query }, reply) => {
    const job = await Job.fromId(queue, params.id)
    if (job !== undefined) return resultOf(job, query.wait ?? 0)
    reply.code(404)
    return { id: params.id }
  },
)
await app.listen({ port: 0, host: '127.0.0.1' })
const listening: Listening = { port: (app.server.address() as AddressInfo).port }
reportReady(listening, { cpu: ownCpu })
