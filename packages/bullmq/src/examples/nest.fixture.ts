// The example of docs/how-to/nestjs.md: the page quotes what follows this line, and nest.test.ts runs it.
import { bullpenBackend, type PlainProcessor, processor } from '@bullpen/bullmq'
import { defineCatalogue, defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { BullModule, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq'
import { type BeforeApplicationShutdown, Injectable, Module } from '@nestjs/common'
import { createRedisBackend, type Job, setDefaultBackendFactory } from 'bullmq'
import { z } from 'zod'

export const welcome = defineTask({
  name: 'mail.welcome',
  queue: 'mail',
  input: z.object({ to: z.string() }),
  output: z.object({ sent: z.string() }),
  timeout: '30s',
  retry: { maxAttempts: 3, backoff: { initialDelay: '1s' } },
})

/** What your handlers need: a service like any other. */
@Injectable()
export class Mailer {
  async send(to: string, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted()
    return `Hello, ${to}`
  }
}

type Context = TaskContext<typeof welcome, { mailer: Mailer }>

const catalogue = defineCatalogue(welcome)

// Nest creates the Queues and Workers: those with the prefix of a queue of Bullpen's get Bullpen's backend.
setDefaultBackendFactory(bullpenBackend({ catalogue, fallback: createRedisBackend }))

const handleWelcome = defineHandler(welcome, import.meta.url, async ({ input, signal, resources }: Context) => ({
  sent: await resources.mailer.send(input.to, signal),
}))

const DRAIN_MS = Number(process.env['DRAIN_MS'] ?? 20_000)

@Processor('mail', { concurrency: 10 })
export class MailProcessor extends WorkerHost implements BeforeApplicationShutdown {
  private readonly run: PlainProcessor

  constructor(mailer: Mailer) {
    super()
    this.run = processor(catalogue, { 'mail.welcome': handleWelcome }, { resources: { mailer } })
  }

  // Declare all three parameters: Nest binds this method, and BullMQ passes a signal only if it has three.
  process(job: Job, token?: string, signal?: AbortSignal): Promise<unknown> {
    return this.run(job, token, signal)
  }

  @OnWorkerEvent('lockRenewalFailed')
  onLockLost(ids: string[]): void {
    for (const id of ids) this.worker.cancelJob(id, 'lock_lost')
  }

  // Nest closes its workers after this, and they wait for running jobs. Jobs that have not ended after DRAIN_MS are requeued. The pause
  // leaves them to other workers.
  async beforeApplicationShutdown(): Promise<void> {
    await this.worker.pause(true)
    setTimeout(() => this.worker.cancelAllJobs('drain'), DRAIN_MS).unref()
  }
}

@Module({
  imports: [
    BullModule.forRoot({ connection: { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' } }),
    BullModule.registerQueue({ name: 'mail', prefix: '{bullpen.mail}' }),
  ],
  providers: [Mailer, MailProcessor],
})
export class MailModule {}
