import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, type Handlers, type TaskContext } from '@bullpen/contract'
import { createWorker, type Middleware, type ResourceOpeners } from '@bullpen/worker'
import { z } from 'zod'

/** Stands in for a mail provider's client. */
class Mailer {
  async send(to: string, text: string, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted()
    return `${to}: ${text}`
  }
  async close(): Promise<void> {
    console.log('mailer closed')
  }
}

interface Resources {
  readonly mailer: Mailer
  readonly prefix: string
}

const welcome = defineTask({
  name: 'email.welcome',
  queue: 'email',
  input: z.object({ to: z.email() }),
  output: z.object({ sent: z.string() }),
})
const catalogue = defineCatalogue(welcome)

type Context = TaskContext<typeof welcome, Resources>
const handleWelcome = defineHandler(welcome, import.meta.url, async ({ input, resources, signal }: Context) => ({
  sent: await resources.mailer.send(input.to, `${resources.prefix} welcome`, signal),
}))

const handlers = { 'email.welcome': handleWelcome } satisfies Handlers<typeof catalogue, Resources>

// Resources are opened in this order before the worker fetches tasks, and closed in reverse order after it has drained.
const resources: ResourceOpeners<Resources> = {
  mailer: { open: () => new Mailer(), close: (mailer) => mailer.close() },
  prefix: { open: () => 'Hello and' },
}

// Middleware wraps every attempt. The first entry of the list is the outermost.
const logged: Middleware<Resources> = async ({ name, attempt }, next) => {
  console.log(`${name}, attempt ${attempt}`)
  return next()
}

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-resources', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({ catalogue, handlers, resources, middleware: [logged], config: { ...config, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const task = await client.enqueue(welcome, { to: 'ann@example.com' })
console.log(await task.result({ timeout: '20s' }))

await api.close()
await worker.drain()
