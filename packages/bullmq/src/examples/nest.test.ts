import 'reflect-metadata'
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq'
import { type INestApplicationContext, Module, Scope } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { type Job, Queue, setDefaultBackendFactory, type Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { processor } from '../plain-processor.ts'
import { isBullpenBackend } from '../store/backend.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { resultOf } from './result-of.fixture.ts'

const connection = { url: inject('redisUrl') }

beforeAll(() => vi.stubEnv('REDIS_URL', connection.url).stubEnv('DRAIN_MS', '50'))
afterAll(() => {
  vi.unstubAllEnvs()
  setDefaultBackendFactory()
})

async function start(module: new () => object): Promise<INestApplicationContext> {
  const app = await NestFactory.createApplicationContext(module, { logger: false })
  onTestFinished(() => app.close())
  return app
}

function openQueue(name: string, prefix?: string): Queue {
  const queue = new Queue(name, { connection, ...(prefix !== undefined && { prefix }) })
  onTestFinished(async () => {
    await queue.obliterate({ force: true })
    await queue.close()
  })
  return queue
}

describe('the signal of a job under Nest’s WorkerHost', () => {
  /** Whether BullMQ passes a signal to its process(): with one, the job can be cancelled. */
  async function signalOf(host: new () => WorkerHost, seen: Promise<unknown>): Promise<boolean> {
    @Module({
      imports: [BullModule.forRoot({ connection }), BullModule.registerQueue({ name: host.name })],
      providers: [host],
    })
    class AppModule {}
    await start(AppModule)
    await openQueue(host.name).add('any', {})
    return (await seen) instanceof AbortSignal
  }

  it('is missing if process() has two parameters, as in Nest’s documentation', async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    @Processor('TwoParameters')
    class TwoParameters extends WorkerHost {
      async process(_job: Job, _token?: string): Promise<void> {
        // biome-ignore lint/complexity/noArguments: it must not have a third parameter
        resolve(arguments[2])
      }
    }
    expect(await signalOf(TwoParameters, promise)).toBe(false)
  })

  it('is passed if it has three', async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    @Processor('ThreeParameters')
    class ThreeParameters extends WorkerHost {
      async process(_job: Job, _token?: string, signal?: AbortSignal): Promise<void> {
        resolve(signal)
      }
    }
    expect(await signalOf(ThreeParameters, promise)).toBe(true)
  })

  it('is missing in request scope, however many it has', async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    @Processor({ name: 'RequestScoped', scope: Scope.REQUEST })
    class RequestScoped extends WorkerHost {
      async process(_job: Job, _token?: string, signal?: AbortSignal): Promise<void> {
        resolve(signal)
      }
    }
    expect(await signalOf(RequestScoped, promise)).toBe(false)
  })
})

describe('the guide’s MailProcessor', () => {
  const PREFIX = '{bullpen.mail}'

  /** The application, and a job whose mailer waits until the signal aborts. */
  async function sending() {
    const { MailModule, MailProcessor, Mailer } = await import('./nest.fixture.ts')
    const app = await start(MailModule)
    const { promise: begun, resolve } = Promise.withResolvers<void>()
    vi.spyOn(app.get(Mailer), 'send').mockImplementation((_, signal) => {
      resolve()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const queue = openQueue('mail', PREFIX)
    const { id = '' } = await queue.add('mail.welcome', { to: 'Ann' })
    await begun
    const worker: Worker = app.get(MailProcessor).worker
    return { app, worker, queue, id }
  }

  it('runs jobs with services that Nest injects', async () => {
    const { MailModule } = await import('./nest.fixture.ts')
    await start(MailModule)
    const job = await openQueue('mail', PREFIX).add('mail.welcome', { to: 'Ann' })
    expect(await resultOf(job, { connection, prefix: PREFIX })).toEqual({ sent: 'Hello, Ann' })
  })

  it('has Bullpen’s backend, as its Queue has, unlike the Worker and the Queue of a queue with another prefix', async () => {
    const { MailModule, MailProcessor } = await import('./nest.fixture.ts')
    @Processor('others')
    class Others extends WorkerHost {
      async process(): Promise<void> {}
    }
    @Module({ imports: [MailModule, BullModule.registerQueue({ name: 'others' })], providers: [Others] })
    class AppModule {}
    const app = await start(AppModule)
    const [mail, others] = ['mail', 'others'].map((name) => app.get<Queue>(getQueueToken(name), { strict: false }))
    const workers = [app.get(MailProcessor, { strict: false }).worker, app.get(Others).worker]
    const all = [mail, others, ...workers].map((each) => isBullpenBackend(each?.getBackend() ?? expect.fail()))
    expect(all).toEqual([true, false, true, false])
  })

  it('can be cancelled', async () => {
    const { worker, queue, id } = await sending()
    expect(worker.cancelJob(id)).toBe(true)
    await eventually(async () => (await queue.getJobState(id)) === 'failed')
  })

  it('requeues the jobs that still run some time after the application began to close', async () => {
    const { app, queue, id } = await sending()
    await app.close()
    expect(await queue.getJobState(id)).toBe('waiting')
    expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 0 })
  })
})

describe('a step of a handler under Nest', () => {
  it('runs once over all attempts of its job', async () => {
    const charge = defineTask({
      name: 'steps.charge',
      queue: 'steps',
      input: z.object({}),
      output: z.object({ key: z.string() }),
      retry: { maxAttempts: 3, backoff: { initialDelay: '1ms', jitter: 0 } },
    })
    const keys: string[] = []
    const handle = defineHandler(charge, import.meta.url, async ({ once, attempt }) => {
      const key = await once('charge', (given) => {
        keys.push(given)
        return given
      })
      if (attempt < 3) throw new TaskError('busy', 'not now')
      return { key }
    })

    // Without a fallback, the queue may have any prefix.
    setDefaultBackendFactory(bullpenBackend())
    @Processor('steps')
    class Steps extends WorkerHost {
      private readonly run = processor(defineCatalogue(charge), { 'steps.charge': handle })
      process(job: Job, token?: string, signal?: AbortSignal): Promise<unknown> {
        return this.run(job, token, signal)
      }
    }
    @Module({
      imports: [BullModule.forRoot({ connection }), BullModule.registerQueue({ name: 'steps' })],
      providers: [Steps],
    })
    class AppModule {}
    await start(AppModule)
    const job = await openQueue('steps').add('steps.charge', {})
    expect(await resultOf(job, { connection })).toEqual({ key: keys[0] })
    expect(keys).toHaveLength(1)
  })
})
